// The server on a real port, asked by clients that behave well and by clients that do not.
#include "server/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/http_parser.h"
#include "tests/server/http_desk.h"

namespace slip {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  const Desk desk;
  RawClient client = desk.client();
  for (int i = 0; i < 3; ++i) {
    client.send(post_request("/echo?a=b", "hello"));
    const std::string reply = client.read_reply();
    EXPECT_EQ(status_of(reply), 200);
    EXPECT_EQ(body_of(reply), "POST a=b hello");
    EXPECT_THAT(reply, HasSubstr("x-request-id: req-"));
    EXPECT_THAT(reply, Not(HasSubstr("Connection: close")));
  }
  client.send(get_request("/echo", "Connection: close\r\n"));
  EXPECT_THAT(client.read_all(), HasSubstr("Connection: close"));
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  const Desk desk;
  RawClient client = desk.client();
  std::string all;
  for (int i = 0; i < 50; ++i) all += post_request("/echo", "number " + std::to_string(i));
  client.send(all);
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(body_of(client.read_reply()), "POST  number " + std::to_string(i));
}

TEST(HttpServer, TakesRequestsByteByByte) {
  const Desk desk;
  RawClient client = desk.client();
  for (const char byte : post_request("/echo", "slow"))
    ASSERT_TRUE(client.send(std::string_view(&byte, 1)));
  EXPECT_EQ(body_of(client.read_reply()), "POST  slow");
}

TEST(HttpServer, ReadsChunkedBodies) {
  const Desk desk;
  RawClient client = desk.client();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");
  EXPECT_EQ(body_of(client.read_reply()), "POST  hello world");
  client.send(get_request("/echo"));
  EXPECT_EQ(body_of(client.read_reply()), "GET  ");
}

// However the body is cut, to the byte: through the parser itself, since a socket may join pieces.
TEST(HttpServer, ReadsChunkedBodiesInAnyPieces) {
  const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const std::string_view body : {"0\r\n\r\n", "00\r\nA: b\r\n\r\n", "2\r\nhi\r\n0\r\n\r\n"}) {
    for (size_t first = 0; first <= body.size(); ++first) {
      for (size_t second = first; second <= body.size(); ++second) {
        HttpParser parser({});
        ASSERT_EQ(parser.feed(head), head.size());
        size_t used = 0;
        for (const size_t end : {first, second, body.size()})
          used += parser.feed(body.substr(used, end - used));
        EXPECT_EQ(parser.stage(), HttpParser::Stage::complete) << body << first << ", " << second;
        EXPECT_EQ(used, body.size());
      }
    }
  }
}

TEST(HttpServer, TellsClientsThatAskToGoOn) {
  const Desk desk;
  RawClient client = desk.client();
  client.send(
      "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nExpect: "
      "100-continue\r\n\r\n");
  ASSERT_TRUE(client.wait_for("HTTP/1.1 100 Continue\r\n\r\n"));
  client.send("body");
  EXPECT_TRUE(client.wait_for("POST  body"));
}

TEST(HttpServer, HeadHasNoBody) {
  const Desk desk;
  RawClient client = desk.client();
  client.send("HEAD /echo HTTP/1.1\r\nHost: localhost\r\n\r\n" + get_request("/echo"));
  ASSERT_TRUE(client.wait_for("GET  "));
  EXPECT_THAT(client.received(), HasSubstr("Content-Length: 6"));
  EXPECT_THAT(client.received(), Not(HasSubstr("HEAD  ")));
}

TEST(HttpServer, StreamsInChunks) {
  Desk desk;
  RawClient client = desk.client();
  client.send(get_request("/events"));
  ASSERT_TRUE(client.wait_for("Transfer-Encoding: chunked\r\n\r\n"));
  const auto reply = desk.wait_for_reply();
  ASSERT_TRUE(reply);
  reply->write("data: one\n\n");
  ASSERT_TRUE(client.wait_for("b\r\ndata: one\n\n\r\n"));
  reply->write("data: two\n\n");
  reply->end();
  EXPECT_THAT(client.read_reply(), testing::EndsWith("b\r\ndata: two\n\n\r\n0\r\n\r\n"));
  // And the next one on the same connection.
  client.send(get_request("/echo"));
  EXPECT_EQ(body_of(client.read_reply()), "GET  ");
  EXPECT_EQ(desk.leavers(), 0);
}

TEST(HttpServer, OldClientsGetStreamsWithoutChunks) {
  Desk desk;
  RawClient client = desk.client();
  client.send("GET /events HTTP/1.0\r\n\r\n");
  const auto reply = desk.wait_for_reply();
  ASSERT_TRUE(reply);
  reply->write("data: one\n\n");
  reply->end();
  EXPECT_EQ(body_of(client.read_all()), "data: one\n\n");
}

TEST(HttpServer, KeepsSilentStreamsAlive) {
  Desk desk({.ping_seconds = 0.1});
  RawClient client = desk.client();
  client.send(get_request("/events"));
  EXPECT_TRUE(client.wait_for("8\r\n: ping\n\n\r\n8\r\n: ping\n\n\r\n"));
}

TEST(HttpServer, NoticesThatAClientLeavesWhileNothingIsSent) {
  Desk desk;
  for (const bool reset : {false, true}) {
    for (const char* path : {"/wait", "/events"}) {
      const int before = desk.leavers();
      RawClient client = desk.client();
      client.send(get_request(path));
      ASSERT_TRUE(desk.wait_for_reply());
      if (reset)
        client.reset();
      else
        client.close();
      const double seconds = desk.wait_for_leavers(before + 1);
      EXPECT_GE(seconds, 0) << path;
      EXPECT_LT(seconds, 0.5) << path;
      desk.drop_replies();
    }
  }
  const std::vector<HttpRecord> log = desk.wait_for_log(4);
  ASSERT_EQ(log.size(), 4u);
  for (const HttpRecord& record : log) EXPECT_EQ(record.status, 499);
}

TEST(HttpServer, NoticesThatAClientLeavesWhileStreaming) {
  Desk desk;
  RawClient client = desk.client();
  client.send(get_request("/events"));
  const auto reply = desk.wait_for_reply();
  ASSERT_TRUE(reply);
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    while (!stop) {
      reply->write("data: token\n\n");
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  ASSERT_TRUE(client.wait_for("token"));
  client.close();
  const double seconds = desk.wait_for_leavers(1);
  stop = true;
  writer.join();
  EXPECT_GE(seconds, 0);
  EXPECT_LT(seconds, 0.5);
}

TEST(HttpServer, TellsALateListenerThatTheClientHasLeft) {
  Desk desk;
  RawClient client = desk.client();
  client.send(get_request("/wait"));
  const auto reply = desk.wait_for_reply();
  ASSERT_TRUE(reply);
  client.close();
  ASSERT_GE(desk.wait_for_leavers(1), 0);
  std::atomic<bool> told = false;
  reply->on_close([&] { told = true; });
  for (int i = 0; i < 1000 && !told; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_TRUE(told);
}

TEST(HttpServer, RefusesWhatProxiesMayReadDifferently) {
  const Desk desk;
  const auto status = [&](const std::string& bytes) {
    RawClient client = desk.client();
    client.send(bytes);
    return status_of(client.read_all());
  };
  const std::string post = "POST /echo HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(status(post + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(status(post + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(status(post + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcd"), 400);
  EXPECT_EQ(status(post + "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd"), 400);
  EXPECT_EQ(status(post + "Content-Length: +4\r\n\r\nabcd"), 400);
  EXPECT_EQ(status(post + "Content-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(status(post + "Content-Length: 0x4\r\n\r\nabcd"), 400);
  EXPECT_EQ(status(post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(status(post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 400);
  EXPECT_EQ(status(post + "Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd"), 415);
  EXPECT_EQ(status("GET /echo HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status("GET /echo HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(status("GET http://elsewhere/ HTTP/1.1\r\nHost: localhost\r\n\r\n"), 400);
  EXPECT_EQ(status("GET /echo HTTP/1.1\r\nHost: localhost\r\nX : y\r\n\r\n"), 400);
  EXPECT_EQ(status("GET /echo HTTP/1.1\nHost: localhost\n\n"), 400);
  EXPECT_EQ(status("GET /echo HTTP/2.0\r\nHost: localhost\r\n\r\n"), 400);
  EXPECT_EQ(status("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and more of a TLS hello"), 400);
}

TEST(HttpServer, ServesManyStreamsAtOnce) {
  constexpr int kStreams = 200, kTokens = 20;
  Desk desk;
  std::vector<RawClient> clients;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(desk.client());
    ASSERT_TRUE(clients.back().send(get_request("/events")));
  }
  ASSERT_TRUE(desk.wait_for_reply(kStreams));
  for (int token = 0; token < kTokens; ++token)
    for (int i = 0; i < kStreams; ++i) desk.wait_for_reply(size_t(i) + 1)->write("data: token\n\n");
  for (int i = 0; i < kStreams; ++i) desk.wait_for_reply(size_t(i) + 1)->end();
  for (RawClient& client : clients) {
    std::string body = body_of(client.read_reply());
    int tokens = 0;
    for (size_t at = 0; (at = body.find("data: token\n\n", at)) != std::string::npos; ++at)
      ++tokens;
    EXPECT_EQ(tokens, kTokens);
  }
}

TEST(HttpServer, AForgottenReplyBecomesAnError) {
  Desk desk;
  RawClient client = desk.client();
  client.send(get_request("/lost"));
  EXPECT_EQ(status_of(client.read_reply()), 500);
  client.send(get_request("/v1/messages/lost"));
  EXPECT_THAT(body_of(client.read_reply()), testing::StartsWith("{\"type\""));  // Anthropic's shape
  // A stream that ends without its end is cut, not closed as if it were whole.
  client.send(get_request("/events"));
  ASSERT_TRUE(desk.wait_for_reply());
  desk.drop_replies();
  EXPECT_THAT(client.read_all(), Not(HasSubstr("0\r\n\r\n")));
}

TEST(HttpServer, RepliesMayOutliveTheServer) {
  Desk desk;
  RawClient client = desk.client();
  client.send(get_request("/events"));
  const auto reply = desk.wait_for_reply();
  ASSERT_TRUE(reply);
  desk.server = nullptr;
  EXPECT_EQ(desk.leavers(), 1);
  reply->write("data: late\n\n");
  reply->end();
}

TEST(HttpServer, DrainsWhatIsUnderWay) {
  Desk desk;
  RawClient idle = desk.client(), busy = desk.client();
  idle.send(get_request("/echo"));
  idle.read_reply();
  busy.send(get_request("/events"));
  const auto reply = desk.wait_for_reply();
  ASSERT_TRUE(reply);
  EXPECT_FALSE(desk.server->drain(0.1));
  EXPECT_EQ(idle.read_all(), "");
  EXPECT_FALSE(desk.client().connected());
  reply->write("data: last\n\n");
  reply->end();
  EXPECT_THAT(busy.read_all(), HasSubstr("data: last"));
  busy.close();
  EXPECT_TRUE(desk.server->drain(5));
}

TEST(HttpServer, ChecksComeBeforeTheBody) {
  HttpServer::Hooks hooks;
  hooks.check = [](HttpRequest& request) -> Admission {
    request.salt = "pepper";
    if (request.headers.count("x-key")) return {.headers = {{"x-extra", "yes"}}};
    return {.answer = error_answer(request.path, {.status = 401, .message = "no key"})};
  };
  hooks.handler = [](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    reply->send(200, "text/plain", request.salt);
  };
  auto server = HttpServer::start({}, std::move(hooks));
  ASSERT_TRUE(server.ok());
  RawClient client(server.value()->port());
  client.send(get_request("/a") + get_request("/b", "X-Key: 1\r\n"));
  EXPECT_EQ(status_of(client.read_reply()), 401);
  const std::string reply = client.read_reply();
  EXPECT_EQ(body_of(reply), "pepper");
  EXPECT_THAT(reply, HasSubstr("x-extra: yes"));
  // With a body that is never sent.
  client.send("POST /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_EQ(status_of(client.read_all()), 401);
}

TEST(HttpServer, LogsEachRequestOnce) {
  Desk desk;
  RawClient client = desk.client();
  client.send(get_request("/wait", "X-Request-Id: my-own_1\r\n"));
  auto reply = desk.wait_for_reply();
  ASSERT_TRUE(reply);
  reply->add_usage({.prompt = 5, .generated = 7});
  reply->add_usage({.prompt = 5, .generated = 8});
  reply->send(200, "text/plain", "done", {{"x-evil", "a\r\nSet-Cookie: b"}});
  desk.drop_replies();
  const std::string bytes = client.read_reply();
  EXPECT_THAT(bytes, HasSubstr("x-request-id: my-own_1\r\n"));
  EXPECT_THAT(bytes, Not(HasSubstr("\nSet-Cookie")));
  reply = nullptr;
  const std::vector<HttpRecord> log = desk.wait_for_log(1);
  ASSERT_EQ(log.size(), 1u);
  EXPECT_EQ(log[0].path, "/wait");
  EXPECT_EQ(log[0].id, "my-own_1");
  EXPECT_EQ(log[0].status, 200);
  EXPECT_EQ(log[0].usage.prompt, 10);
  EXPECT_EQ(log[0].usage.generated, 15);
}

TEST(HttpServer, SaysWhyItCannotListen) {
  const Desk desk;
  HttpServer::Hooks hooks;
  hooks.handler = [](const HttpRequest&, const std::shared_ptr<HttpReply>&) {};
  const auto taken = HttpServer::start({.port = desk.server->port()}, hooks);
  ASSERT_FALSE(taken.ok());
  EXPECT_THAT(taken.failure().message, HasSubstr("in use"));
  const auto no_tls =
      HttpServer::start({.tls_certificate = "/nowhere", .tls_key = "/nowhere"}, hooks);
  ASSERT_FALSE(no_tls.ok());
  EXPECT_THAT(no_tls.failure().message, HasSubstr("/nowhere"));
}

}  // namespace
}  // namespace slip
