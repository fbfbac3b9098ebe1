// Thousands of requests that are almost right. Each must end in an answer or a closed connection,
// and the server must go on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "server/http_parser.h"
#include "server/http_server.h"
#include "tests/server/http_client.h"

namespace slip {
namespace {

const std::vector<std::string>& seeds() {
  static const std::vector<std::string> all = {
      get_request("/v1/models?a=b&c=%20", "Accept: */*\r\nUser-Agent: test/1.0\r\n"),
      post_request("/v1/chat/completions", R"({"model":"m","messages":[{"role":"user"}]})",
                   "Authorization: Bearer key\r\nContent-Type: application/json\r\n"),
      "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
      "1a;name=value\r\nabcdefghijklmnopqrstuvwxyz\r\n5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n",
      "HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
      get_request("/a") + get_request("/b") + post_request("/c", "body") + get_request("/d"),
      post_request("/x", std::string("\xff\xfe\x00\xc3\x28", 5), "Expect: 100-continue\r\n"),
  };
  return all;
}

std::string mutated(std::mt19937& random) {
  std::string text = seeds()[random() % seeds().size()];
  const auto place = [&] { return text.empty() ? 0 : random() % text.size(); };
  const unsigned changes = 1 + random() % 6;
  for (unsigned i = 0; i < changes; ++i) {
    switch (random() % 8) {
      case 0: text[place()] = char(random()); break;
      case 1: text.insert(place(), 1, char(random())); break;
      case 2: text.erase(place(), 1 + random() % 8); break;
      case 3: text.resize(place()); break;
      case 4: text.insert(place(), text.substr(place(), random() % 64)); break;
      case 5: text.insert(place(), std::string(random() % 3000, char(random()))); break;
      case 6: text.insert(place(), "\r\n"); break;
      case 7: {
        constexpr std::array<const char*, 7> kFields = {"Content-Length: 5\r\n",
                                                        "Content-Length: 99999999999999999999\r\n",
                                                        "Transfer-Encoding: chunked\r\n",
                                                        "Transfer-Encoding: \tchunked \r\n",
                                                        "Host: evil\r\n",
                                                        " folded\r\n",
                                                        "Content-Encoding: gzip\r\n"};
        const size_t line = text.find("\r\n");
        if (line != std::string::npos) text.insert(line + 2, kFields[random() % kFields.size()]);
        break;
      }
    }
    if (text.empty()) text = "\r\n";
  }
  return text;
}

struct Outcome {
  std::vector<std::string> requests;  // in words
  int refusal = 0;
};

// Parses all requests in `bytes` as a connection does, given in pieces of at most `piece`.
Outcome parse_all(const std::string& bytes, size_t piece, const HttpLimits& limits) {
  Outcome outcome;
  std::string buffer;
  auto parser = std::make_unique<HttpParser>(limits);
  for (size_t begin = 0; begin < bytes.size(); begin += piece) {
    buffer += bytes.substr(begin, piece);
    for (bool moved = true; moved;) {
      const HttpParser::Stage before = parser->stage();
      const size_t used = parser->feed(buffer);
      buffer.erase(0, used);
      EXPECT_LE(buffer.size(), limits.header_bytes + piece + 4096);
      if (parser->stage() == HttpParser::Stage::body && !parser->has_body()) parser->feed({});
      if (parser->stage() == HttpParser::Stage::refused) {
        outcome.refusal = parser->refusal().status;
        return outcome;
      }
      moved = parser->stage() != before;
      if (parser->stage() != HttpParser::Stage::complete) continue;
      const HttpRequest& request = parser->request();
      outcome.requests.push_back(request.method + " " + request.path + " " + request.body);
      parser = std::make_unique<HttpParser>(limits);
      moved = !buffer.empty();
    }
  }
  return outcome;
}

TEST(HttpMalformed, PiecesDoNotChangeWhatIsUnderstood) {
  const HttpLimits limits{.header_bytes = 8192, .body_bytes = 1000};
  std::mt19937 random(5);
  int understood = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = mutated(random);
    const Outcome whole = parse_all(bytes, bytes.size(), limits);
    const Outcome split = parse_all(bytes, 1 + random() % 40, limits);
    // Which fault of several is found first may differ, and when; what is let through may not.
    ASSERT_EQ(whole.requests, split.requests) << "mutation " << i;
    understood += int(!whole.requests.empty());
    refused += int(whole.refusal != 0);
  }
  // The mutations must reach both.
  EXPECT_GT(understood, 2000);
  EXPECT_GT(refused, 2000);
}

// Beast takes these, and a proxy in front of us may read them differently.
TEST(HttpMalformed, AmbiguousHeadsAreRefused) {
  const std::string start = "POST /x HTTP/1.1\r\nHost: localhost\r\n";
  const std::string body = "\r\n{\"a\": \"sixteen\"}";
  for (const std::string headers :
       {"Content-Length:\r\n 16\r\n", "Content-Length: 1\r\n 6\r\n",
        "Transfer-Encoding:\r\n chunked\r\n", "Transfer-Encoding: chunked\r\n\t\r\n",
        "Content-Length: 16, 16\r\n", "Content-Length: 16,16\r\n",
        "Content-Length: 16\r\nContent-Length: 16\r\n", "Content-Length: +16\r\n",
        "Content-Length: 16\r\nTransfer-Encoding: chunked\r\n",
        "X-A: a\r\n b\r\nContent-Length: 16\r\n", "X-A:\r\n\tb\r\nContent-Length: 16\r\n"})
    for (const size_t piece : {1u, 7u, 1000u}) {
      const Outcome outcome = parse_all(start + headers + body, piece, {});
      EXPECT_EQ(outcome.refusal, 400) << headers << " in pieces of " << piece;
      EXPECT_TRUE(outcome.requests.empty()) << headers;
    }
  EXPECT_EQ(parse_all(start + "Content-Length: 16\r\nX-A: a b\r\n" + body, 7, {}).refusal, 0);
}

TEST(HttpMalformed, SeedsAreUnderstood) {
  size_t requests = 0;
  for (const std::string& seed : seeds()) {
    const Outcome outcome = parse_all(seed, seed.size(), {});
    EXPECT_EQ(outcome.refusal, 0) << seed;
    requests += outcome.requests.size();
  }
  EXPECT_EQ(requests, 9u);
}

TEST(HttpMalformed, TheServerOutlivesThemAll) {
  HttpServer::Hooks hooks;
  std::atomic<int> handled = 0;
  hooks.handler = [&](const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    ++handled;
    if (request.path.size() % 2 == 0) return reply->send(200, "text/plain", request.body);
    reply->begin(200, "text/event-stream");
    reply->write("data: " + request.path + "\n\n");
    reply->end();
  };
  auto server = HttpServer::start({.limits = {.header_bytes = 8192, .body_bytes = 1000}}, hooks);
  ASSERT_TRUE(server.ok());
  std::mt19937 random(6);
  RawClient witness(server.value()->port());
  int answered = 0;
  for (int i = 0; i < 3000; ++i) {
    RawClient client(server.value()->port());
    client.send(mutated(random));
    client.end_writing();
    const std::string reply = client.read_all();
    if (!reply.empty()) {
      EXPECT_TRUE(reply.starts_with("HTTP/1.1 ")) << reply;
      ++answered;
    }
    if (i % 100 != 0) continue;
    witness.send(get_request("/ok"));
    EXPECT_EQ(status_of(witness.read_reply()), 200);
  }
  EXPECT_GT(answered, 1000);
  EXPECT_GT(handled.load(), 300);
}

}  // namespace
}  // namespace slip
