// Keys, hosts and origins: who may come in.
#include "server/http_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace slip {
namespace {

using testing::HasSubstr;

KeyRing ring(std::string_view lines) {
  KeyRing keys;
  EXPECT_TRUE(keys.add(lines, "test").ok());
  return keys;
}

HttpRequest request(const std::string& path,
                    std::map<std::string, std::string, std::less<>> headers) {
  HttpRequest made;
  made.method = "GET";
  made.path = path;
  made.headers = std::move(headers);
  made.headers.emplace("host", "localhost:8080");
  return made;
}

int status_of(const HttpGate& gate, HttpRequest asked) {
  const Admission admission = gate.admit(asked);
  return admission.answer ? admission.answer->status : 200;
}

TEST(KeyRing, KnowsItsKeysAndNoOthers) {
  const KeyRing keys = ring("# for the team\nalpha-key\r\n\n  beta-key  \n");
  EXPECT_TRUE(keys.salt_of("alpha-key"));
  EXPECT_TRUE(keys.salt_of("beta-key"));
  for (const char* wrong : {"", "alpha", "alpha-key ", "ALPHA-KEY", "# for the team", "gamma-key"})
    EXPECT_FALSE(keys.salt_of(wrong)) << wrong;
  EXPECT_NE(*keys.salt_of("alpha-key"), *keys.salt_of("beta-key"));
  EXPECT_EQ(keys.salt_of("alpha-key")->find("alpha"), std::string::npos);
}

TEST(KeyRing, RefusesWhatHeadersCannotCarry) {
  KeyRing keys;
  const Status added = keys.add("fine\nnot fine\n", "keys.txt");
  ASSERT_FALSE(added.ok());
  EXPECT_THAT(added.failure().message, HasSubstr("keys.txt line 2"));
}

TEST(HttpGate, AsksForAKeyEverywhereButForHealthAndThePage) {
  const HttpGate gate({.keys = ring("secret")});
  for (const char* path : {"/v1/models", "/metrics", "/version", "/tokenize", "/nope", "/health/x",
                           "/healthy", "//health"})
    EXPECT_EQ(status_of(gate, request(path, {})), 401) << path;
  for (const char* path : {"/health", "/v1/health", "/"})
    EXPECT_EQ(status_of(gate, request(path, {})), 200) << path;
  HttpRequest post = request("/health", {});
  post.method = "POST";
  EXPECT_EQ(status_of(gate, post), 401);
}

TEST(HttpGate, TakesKeysAsEitherKindOfClientSendsThem) {
  const HttpGate gate({.keys = ring("secret\nother")});
  EXPECT_EQ(status_of(gate, request("/v1/models", {{"authorization", "Bearer secret"}})), 200);
  EXPECT_EQ(status_of(gate, request("/v1/models", {{"authorization", "bearer  secret"}})), 200);
  EXPECT_EQ(status_of(gate, request("/v1/messages", {{"x-api-key", "other"}})), 200);
  EXPECT_EQ(status_of(gate, request("/v1/models", {{"authorization", "Bearer wrong"}})), 401);
  EXPECT_EQ(status_of(gate, request("/v1/models", {{"authorization", "secret"}})), 401);
  EXPECT_EQ(status_of(gate, request("/v1/models", {{"authorization", "Basic secret"}})), 401);
  EXPECT_EQ(status_of(gate, request("/v1/models", {{"authorization", "Bearer "}})), 401);
}

TEST(HttpGate, TellsWhatCouldBeDoneAboutARefusal) {
  const HttpGate gate({.host_hint = "name the host", .origin_hint = "name the origin"});
  HttpRequest foreign_host = request("/v1/models", {{"host", "evil.example"}});
  EXPECT_THAT(gate.admit(foreign_host).answer->body, HasSubstr("hosts (name the host)"));
  HttpRequest foreign_page = request("/v1/models", {{"origin", "https://evil.example"}});
  EXPECT_THAT(gate.admit(foreign_page).answer->body, HasSubstr("origins (name the origin)"));
}

TEST(HttpGate, SaltsDifferByKeyAndAreEmptyWithout) {
  const HttpGate gate({.keys = ring("one\ntwo")});
  HttpRequest first = request("/v1/models", {{"x-api-key", "one"}});
  HttpRequest second = request("/v1/models", {{"x-api-key", "two"}});
  ASSERT_FALSE(gate.admit(first).answer);
  ASSERT_FALSE(gate.admit(second).answer);
  EXPECT_FALSE(first.salt.empty());
  EXPECT_NE(first.salt, second.salt);
  HttpRequest open = request("/v1/models", {});
  ASSERT_FALSE(HttpGate({}).admit(open).answer);
  EXPECT_EQ(open.salt, "");
}

TEST(HttpGate, RefusalsHaveTheShapeOfTheirPath) {
  const HttpGate gate({.keys = ring("secret")});
  HttpRequest openai = request("/v1/models", {}), anthropic = request("/v1/messages", {});
  EXPECT_THAT(gate.admit(openai).answer->body, testing::StartsWith("{\"error\""));
  EXPECT_THAT(gate.admit(anthropic).answer->body, testing::StartsWith("{\"type\""));
}

TEST(HttpGate, AnswersForItsOwnNamesOnly) {
  const HttpGate gate({.hosts = {"spark.lan"}});
  const auto status = [&](const char* host) {
    HttpRequest asked = request("/v1/models", {{"host", host}});
    return status_of(gate, asked);
  };
  for (const char* host :
       {"localhost", "localhost:8080", "LOCALHOST:1", "127.0.0.1:8080", "192.168.1.7", "[::1]:8080",
        "spark.lan:8080", "a.localhost", "localhost."})
    EXPECT_EQ(status(host), 200) << host;
  for (const char* host : {"evil.example", "localhost.evil.example:8080", "127.0.0.1.evil.example",
                           "spark.lan.evil.example", "evil.example:127", "[::1].evil.example",
                           "[evil", "1.2.3", "spark"})
    EXPECT_EQ(status(host), 421) << host;
  EXPECT_EQ(status_of(HttpGate({.hosts = {"*"}}), request("/", {{"host", "any.example"}})), 200);
}

TEST(HttpGate, PagesOfOtherSitesMayNotUseIt) {
  const HttpGate gate({.origins = {"https://chat.example"}});
  const auto status = [&](const char* origin) {
    return status_of(gate, request("/v1/models", {{"origin", origin}}));
  };
  EXPECT_EQ(status("http://localhost:8080"), 200);
  EXPECT_EQ(status("https://localhost:8080"), 200);
  EXPECT_EQ(status("https://chat.example"), 200);
  for (const char* origin :
       {"http://localhost:3000", "http://localhost", "null", "https://evil.example", "http://",
        "localhost:8080", "https://chat.example.evil.example", "http://chat.example"})
    EXPECT_EQ(status(origin), 403) << origin;
}

TEST(HttpGate, PreflightsNeedNoKeyButTheRightOrigin) {
  const HttpGate gate({.keys = ring("secret"), .origins = {"https://chat.example"}});
  HttpRequest ask = request("/v1/chat/completions",
                            {{"origin", "https://chat.example"},
                             {"access-control-request-method", "POST"},
                             {"access-control-request-headers", "authorization, content-type"}});
  ask.method = "OPTIONS";
  const Admission admission = gate.admit(ask);
  ASSERT_TRUE(admission.answer);
  EXPECT_EQ(admission.answer->status, 204);
  const std::pair<std::string, std::string> allowed{"Access-Control-Allow-Headers",
                                                    "authorization, content-type"};
  EXPECT_THAT(admission.answer->headers, testing::Contains(allowed));
  const std::pair<std::string, std::string> origin{"Access-Control-Allow-Origin",
                                                   "https://chat.example"};
  EXPECT_THAT(admission.headers, testing::Contains(origin));
  ask.headers["origin"] = "https://evil.example";
  EXPECT_EQ(status_of(gate, ask), 403);
  // OPTIONS alone opens no door.
  HttpRequest plain = request("/v1/chat/completions", {});
  plain.method = "OPTIONS";
  EXPECT_EQ(status_of(gate, plain), 401);
}

}  // namespace
}  // namespace slip
