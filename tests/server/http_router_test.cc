// Routes, and the endpoints for operators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "base/json.h"
#include "server/chat_page.h"
#include "server/operations.h"
#include "server/router.h"

namespace slip {
namespace {

using testing::HasSubstr;

struct Recorded final : HttpReply {
  void on_close(std::function<void()>) override {}
  void send(int given, std::string_view, std::string text, const HttpHeaders& named) override {
    headers = named;
    body = std::move(text);
    status.set_value(given);
  }
  void begin(int, std::string_view, const HttpHeaders&) override {}
  void write(std::string) override {}
  void end() override {}

  int wait() {
    std::future<int> future = status.get_future();
    return future.wait_for(std::chrono::seconds(10)) == std::future_status::ready ? future.get()
                                                                                  : 0;
  }

  std::promise<int> status;
  std::string body;
  HttpHeaders headers;
};

std::shared_ptr<Recorded> ask(Router& router, const std::string& method, const std::string& path) {
  HttpRequest request;
  request.method = method;
  request.path = path;
  auto reply = std::make_shared<Recorded>();
  router.handle(request, reply);
  return reply;
}

HttpHandler saying(const std::string& text) {
  return [text](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
    reply->send(200, "text/plain", text);
  };
}

TEST(Router, FindsTheHandler) {
  Router router({{"GET", "/a", saying("quick"), true},
                 {"POST", "/b", saying("slow")},
                 {"GET", "/b/*", saying("below")}},
                1);
  const auto body = [&](const char* method, const char* path) {
    const auto reply = ask(router, method, path);
    EXPECT_EQ(reply->wait(), 200) << path;
    return reply->body;
  };
  EXPECT_EQ(body("GET", "/a"), "quick");
  EXPECT_EQ(body("HEAD", "/a"), "quick");
  EXPECT_EQ(body("POST", "/b"), "slow");
  EXPECT_EQ(body("GET", "/b/c/d"), "below");
  EXPECT_EQ(ask(router, "GET", "/b/")->wait(), 404);
  EXPECT_EQ(ask(router, "GET", "/ab")->wait(), 404);
}

TEST(Router, SaysWhatIsAllowed) {
  Router router({{"GET", "/a", saying(""), true},
                 {"POST", "/a", saying("")},
                 {"POST", "/v1/messages", saying("")}},
                1);
  const auto wrong = ask(router, "DELETE", "/a");
  EXPECT_EQ(wrong->wait(), 405);
  const std::pair<std::string, std::string> allow{"Allow", "GET, HEAD, POST"};
  EXPECT_THAT(wrong->headers, testing::Contains(allow));
  EXPECT_THAT(wrong->body, HasSubstr("\"error\""));
  const auto anthropic = ask(router, "GET", "/v1/messages");
  EXPECT_EQ(anthropic->wait(), 405);
  EXPECT_THAT(anthropic->body, testing::StartsWith("{\"type\""));
}

TEST(Router, SlowHandlersHoldUpNobodyElse) {
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  Router router({{"GET", "/health", saying("ok"), true},
                 {"GET", "/slow",
                  [released](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
                    released.wait();
                    reply->send(200, "text/plain", "");
                  }}},
                1);
  const auto slow = ask(router, "GET", "/slow");
  EXPECT_EQ(ask(router, "GET", "/health")->wait(), 200);
  release.set_value();
  EXPECT_EQ(slow->wait(), 200);
}

TEST(Router, LongBodiesHoldUpNoShortOnes) {
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  const HttpHandler handler = [released](const HttpRequest& request,
                                         const std::shared_ptr<HttpReply>& reply) {
    if (!request.body.empty()) released.wait();
    reply->send(200, "text/plain", "");
  };
  Router router({{"POST", "/a", handler}}, 2);
  std::vector<std::shared_ptr<Recorded>> waiting;
  for (int i = 0; i < 5; ++i) {
    waiting.push_back(std::make_shared<Recorded>());
    HttpRequest request;
    request.method = "POST";
    request.path = "/a";
    request.body.resize(Router::kShortBody + 1);
    router.handle(std::move(request), waiting.back());
    EXPECT_EQ(ask(router, "POST", "/a")->wait(), 200);
  }
  release.set_value();
  for (const auto& each : waiting) EXPECT_EQ(each->wait(), 200);
}

TEST(Router, OnlySoManyWait) {
  std::promise<void> release;
  const std::shared_future<void> released = release.get_future().share();
  std::promise<void> begun;
  std::once_flag first;
  Router router({{"GET", "/slow",
                  [&, released](const HttpRequest&, const std::shared_ptr<HttpReply>& reply) {
                    std::call_once(first, [&] { begun.set_value(); });
                    released.wait();
                    reply->send(200, "text/plain", "");
                  }}},
                1);
  const auto working = ask(router, "GET", "/slow");
  begun.get_future().wait();
  std::vector<std::shared_ptr<Recorded>> waiting;
  for (size_t i = 0; i < Router::kMostWaiting; ++i) waiting.push_back(ask(router, "GET", "/slow"));
  EXPECT_EQ(ask(router, "GET", "/slow")->wait(), 503);
  release.set_value();
  EXPECT_EQ(working->wait(), 200);
  EXPECT_EQ(waiting.back()->wait(), 200);
}

TEST(Router, AnExceptionCostsOneRequest) {
  const HttpHandler bad = [](const HttpRequest&, const std::shared_ptr<HttpReply>&) {
    throw std::bad_alloc();
  };
  Router router({{"GET", "/bad", bad}, {"GET", "/quick", bad, true}}, 1);
  EXPECT_EQ(ask(router, "GET", "/quick")->wait(), 500);
  EXPECT_EQ(ask(router, "GET", "/bad")->wait(), 500);
  EXPECT_EQ(ask(router, "GET", "/bad")->wait(), 500);
}

TEST(Operations, HealthSaysHowFarLoadingIs) {
  const Metrics metrics("m");
  Operations operations("1.2.3", metrics);
  Router router(operations.routes(), 1);
  operations.set_loading(0.42);
  for (const char* path : {"/health", "/v1/health"}) {
    const auto reply = ask(router, "GET", path);
    EXPECT_EQ(reply->wait(), 503);
    const JsonObject body = parse_json(reply->body, "body").value().as_object();
    EXPECT_EQ(body.at("status").as_string(), "loading");
    EXPECT_EQ(body.at("progress").to_number<double>(), 0.42);
    EXPECT_TRUE(body.contains("error"));
  }
  operations.set_ready(nullptr);
  EXPECT_EQ(ask(router, "GET", "/health")->wait(), 200);
  operations.set_draining();
  EXPECT_EQ(ask(router, "GET", "/health")->wait(), 503);
}

TEST(Operations, ServesVersionMetricsAndThePage) {
  const Metrics metrics("m");
  Operations operations("1.2.3", metrics);
  Router router(operations.routes(), 1);
  EXPECT_EQ(ask(router, "GET", "/version")->body, "{\"version\": \"1.2.3\"}");
  EXPECT_THAT(ask(router, "GET", "/metrics")->body, HasSubstr("vllm:num_requests_running"));
  const auto page = ask(router, "GET", "/");
  EXPECT_EQ(page->body, chat_page());
  EXPECT_THAT(page->body, HasSubstr("<"));
  std::string policy;
  for (const auto& [name, value] : page->headers)
    if (name == "Content-Security-Policy") policy = value;
  EXPECT_THAT(policy, HasSubstr("connect-src 'self'"));
}

}  // namespace
}  // namespace slip
