// What clients that are slow, silent, greedy or gone may cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>

#include <atomic>
#include <future>
#include <thread>

#include "server/router.h"
#include "tests/server/http_desk.h"

namespace slip {
namespace {

using testing::HasSubstr;

TEST(HttpLimits, DropsClientsThatReadTooSlowly) {
  Desk desk({.queued_bytes = 256 << 10});
  RawClient client(desk.server->port(), 4096);
  client.send(get_request("/events"));
  const auto reply = desk.wait_for_reply();
  ASSERT_TRUE(reply);
  const std::string piece(16 << 10, 'x');
  // Far more than the sockets hold.
  for (int i = 0; i < 2000 && desk.leavers() == 0; ++i) {
    reply->write(piece);
    if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(desk.wait_for_leavers(1), 0);
}

TEST(HttpLimits, DropsClientsThatStopReading) {
  Desk desk({.write_seconds = 0.3});
  RawClient client(desk.server->port(), 4096);
  client.send(get_request("/events"));
  const auto reply = desk.wait_for_reply();
  ASSERT_TRUE(reply);
  reply->write(std::string(8 << 20, 'x'));
  EXPECT_GE(desk.wait_for_leavers(1), 0);
}

TEST(HttpLimits, SendsLargeRepliesToSlowReaders) {
  Desk desk;
  RawClient client(desk.server->port(), 4096);
  client.send(get_request("/wait"));
  const auto reply = desk.wait_for_reply();
  ASSERT_TRUE(reply);
  reply->send(200, "text/plain", std::string(20 << 20, 'x'));
  EXPECT_EQ(body_of(client.read_reply()).size(), size_t(20 << 20));
}

TEST(HttpLimits, EndsSlowRequests) {
  const Desk desk({.head_seconds = 0.3, .body_seconds = 0.3});
  RawClient silent = desk.client(), head = desk.client(), body = desk.client();
  head.send("POST /echo HTTP/1.1\r\nHost: loc");
  body.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc");
  EXPECT_EQ(status_of(head.read_all()), 408);
  EXPECT_EQ(status_of(body.read_all()), 408);
  EXPECT_EQ(silent.read_all(), "");
}

TEST(HttpLimits, TellsSlowClientsInTheirWords) {
  const Desk desk({.body_seconds = 0.2});
  RawClient client = desk.client();
  client.send("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc");
  const std::string reply = client.read_all();
  EXPECT_EQ(status_of(reply), 408);
  EXPECT_TRUE(body_of(reply).starts_with("{\"type\"")) << reply;  // as Anthropic writes errors
}

TEST(HttpLimits, ADripOfBytesDoesNotHoldAConnection) {
  const Desk desk({.head_seconds = 0.5});
  RawClient client = desk.client();
  const Stopwatch clock;
  client.send("GET /echo HTTP/1.1\r\nHost: localhost\r\nX: ");
  while (client.send("a") && client.received().empty() && clock.seconds() < 5) client.receive(0.05);
  EXPECT_LT(clock.seconds(), 2);
  EXPECT_EQ(status_of(client.received()), 408);
}

TEST(HttpLimits, ClosesIdleConnections) {
  const Desk desk({.idle_seconds = 0.2});
  RawClient client = desk.client();
  client.send(get_request("/echo"));
  client.read_reply();
  const Stopwatch clock;
  EXPECT_EQ(client.read_all(), "");
  EXPECT_LT(clock.seconds(), 5);
}

TEST(HttpLimits, RefusesWhatIsTooLong) {
  const Desk desk({.limits = {.header_bytes = 4096, .body_bytes = 10000}});
  const auto status = [&](const std::string& bytes) {
    RawClient client = desk.client();
    client.send(bytes);
    return status_of(client.read_all());
  };
  EXPECT_EQ(status(get_request("/echo", "X: " + std::string(5000, 'x') + "\r\n")), 431);
  EXPECT_EQ(status(get_request("/" + std::string(5000, 'x'))), 431);
  EXPECT_EQ(status(std::string(100000, 'x')), 431);
  EXPECT_EQ(status(post_request("/echo", std::string(20000, 'x'))), 413);
  EXPECT_EQ(status("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                   "99999999999999999999999\r\n\r\n"),
            400);
  std::string chunks =
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 20; ++i) chunks += "400\r\n" + std::string(1024, 'x') + "\r\n";
  EXPECT_EQ(status(chunks), 413);
  EXPECT_EQ(status("POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                   "1;" +
                   std::string(20000, 'x')),
            400);
}

TEST(HttpLimits, AnswersBeforeALargeBodyIsSent) {
  const Desk desk({.limits = {.body_bytes = 10000}});
  RawClient client = desk.client();
  client.send("POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n");
  EXPECT_EQ(status_of(client.read_all()), 413);
}

TEST(HttpLimits, BodiesOfAllHaveALimitToo) {
  Desk desk({.bodies_bytes = 10000});
  RawClient first = desk.client(), second = desk.client();
  const std::string head = "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6000\r\n\r\n";
  first.send(head + std::string(5000, 'x'));
  for (int i = 0; i < 200 && desk.server->connections() < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  second.send(head + std::string(6000, 'x'));
  EXPECT_EQ(status_of(second.read_all()), 503);
  // When the first is done, or gone, there is room again.
  first.send(std::string(1000, 'x'));
  EXPECT_EQ(status_of(first.read_reply()), 200);
  first.send(head + std::string(5000, 'x'));
  first.close();
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    RawClient again = desk.client();
    again.send(head + std::string(6000, 'x'));
    EXPECT_EQ(status_of(again.read_reply()), 200);
  }
}

// A body that waits for a thread is held, whether its client waits or not.
TEST(HttpLimits, ClientsThatLeaveTakeTheirBodiesAlongOnlyWhenTheyAreDropped) {
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::atomic<int> begun = 0;
  Router router({{"POST", "/slow",
                  [&begun, released](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
                    ++begun;
                    released.wait();
                    reply->send(200, "text/plain", "");
                  }}},
                1);
  HttpServer::Hooks hooks;
  hooks.handler = [&](HttpRequest&& request, const std::shared_ptr<HttpReply>& reply) {
    router.handle(std::move(request), reply);
  };
  auto server = HttpServer::start({.bodies_bytes = 10000}, std::move(hooks)).value();
  const auto wait_until = [](auto&& holds) {
    for (int i = 0; i < 2000 && !holds(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return holds();
  };
  const auto ask = [&](RawClient& client) {
    client.send(post_request("/slow", std::string(4000, 'x')));
    return status_of(client.read_reply());
  };
  RawClient busy(server->port());
  busy.send(post_request("/slow", "x"));
  ASSERT_TRUE(wait_until([&] { return begun == 1; }));
  for (int i = 0; i < 2; ++i) {
    RawClient leaver(server->port());
    leaver.send(post_request("/slow", std::string(4000, 'x')));
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    leaver.close();
    ASSERT_TRUE(wait_until([&] { return server->connections() == 1; }));
  }
  RawClient late(server->port());
  EXPECT_EQ(ask(late), 503);
  release.set_value();
  EXPECT_EQ(status_of(busy.read_reply()), 200);
  // Those who had left are dropped when their turn comes, and only then is there room.
  int status = 503;
  wait_until([&] {
    if (status != 503) return true;
    RawClient again(server->port());
    status = ask(again);
    return status != 503;
  });
  EXPECT_EQ(status, 200);
  EXPECT_EQ(begun, 2);  // nobody worked for them
}

TEST(HttpLimits, AnnouncedBodiesKeepNobodyOut) {
  Desk desk({.bodies_bytes = 10000});
  std::vector<RawClient> idlers;
  for (int i = 0; i < 8; ++i) {
    idlers.push_back(desk.client());
    idlers.back().send(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\n\r\nbegun");
    idlers.push_back(desk.client());
    idlers.back().send(
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n");
  }
  for (int i = 0; i < 200 && desk.server->connections() < 16; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  RawClient other = desk.client();
  other.send(post_request("/echo", std::string(5000, 'x')));
  EXPECT_EQ(status_of(other.read_reply()), 200);
}

TEST(HttpLimits, SaysThatThereAreTooManyConnections) {
  const Desk desk({.connections = 4});
  std::vector<RawClient> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(desk.client());
    clients.back().send(get_request("/echo"));
    EXPECT_EQ(status_of(clients.back().read_reply()), 200);
  }
  RawClient one_more = desk.client();
  EXPECT_EQ(status_of(one_more.read_all()), 503);
  clients.pop_back();
  for (int i = 0; i < 200 && desk.server->connections() > 3; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  RawClient again = desk.client();
  again.send(get_request("/echo"));
  EXPECT_EQ(status_of(again.read_reply()), 200);
}

// An IPv4 address by which this machine is known to others; 0 if it has none.
in_addr_t own_address() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return 0;
  in_addr_t found = 0;
  for (const ifaddrs* one = all; one; one = one->ifa_next) {
    if (!one->ifa_addr || one->ifa_addr->sa_family != AF_INET) continue;
    const in_addr_t address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr;
    if (ntohl(address) >> 24 != 127) found = address;
  }
  ::freeifaddrs(all);
  return found;
}

TEST(HttpLimits, OneAddressCannotTakeAllConnections) {
  const in_addr_t address = own_address();
  if (!address) GTEST_SKIP() << "this machine has no address but its own";
  const Desk desk({.host = "0.0.0.0", .connections_per_client = 2});
  std::vector<RawClient> greedy;
  for (int i = 0; i < 2; ++i) {
    greedy.emplace_back(desk.server->port(), 0, address);
    greedy.back().send(get_request("/echo"));
    EXPECT_TRUE(greedy.back().wait_for("HTTP/1.1"));
  }
  RawClient third(desk.server->port(), 0, address);
  third.send(get_request("/echo"));
  EXPECT_EQ(third.read_all(), "");
  RawClient proxy = desk.client();  // from this machine
  proxy.send(get_request("/echo"));
  EXPECT_EQ(status_of(proxy.read_reply()), 200);
  // Who leaves makes room.
  greedy.pop_back();
  for (int i = 0; i < 2000 && desk.server->connections() > 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  RawClient again(desk.server->port(), 0, address);
  again.send(get_request("/echo"));
  EXPECT_EQ(status_of(again.read_reply()), 200);
}

// A deadline is for clients that take nothing, not for those that take their time.
TEST(HttpLimits, SlowReadersThatReadAreNotDropped) {
  Desk desk({.write_seconds = 1.5});
  RawClient client(desk.server->port(), 128 << 10);
  client.send(get_request("/wait"));
  const auto reply = desk.wait_for_reply();
  ASSERT_TRUE(reply);
  constexpr size_t kBytes = 24 << 20;
  reply->send(200, "text/plain", std::string(kBytes, 'x'));
  const Stopwatch clock;
  while (client.received().size() < kBytes) {
    ASSERT_TRUE(client.receive()) << "dropped after " << clock.seconds() << " s";
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GT(clock.seconds(), 3.0) << "too fast to show anything";
}

}  // namespace
}  // namespace slip
