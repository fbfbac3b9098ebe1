// The API on minnow's tokenizer and template, with an engine that says what a test tells it to.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "server/api.h"

namespace slip {

// Keeps everything a handler sends.
class RecordedReply final : public HttpReply {
 public:
  void on_close(std::function<void()> callback) override { close_ = std::move(callback); }
  void send(int status, std::string_view type, std::string body,
            const HttpHeaders& headers) override {
    EXPECT_EQ(status_, 0) << "a second reply: " << body;
    status_ = status;
    type_ = type;
    body_ = std::move(body);
    headers_ = headers;
    ended_ = true;
  }
  void begin(int status, std::string_view type, const HttpHeaders& headers) override {
    EXPECT_EQ(status_, 0) << "a second reply";
    status_ = status;
    type_ = type;
    headers_ = headers;
  }
  void write(std::string piece) override {
    EXPECT_NE(status_, 0) << "written before the head";
    EXPECT_FALSE(ended_) << "written behind the end: " << piece;
    body_ += piece;
    ++writes_;
  }
  void end() override {
    EXPECT_FALSE(ended_);
    ended_ = true;
  }
  void add_usage(const TokenUsage& usage) override { generated_ += usage.generated; }

  void hang_up() {
    if (close_) close_();
  }

  int status() const { return status_; }
  const std::string& body() const { return body_; }
  const std::string& type() const { return type_; }
  bool ended() const { return ended_; }
  int writes() const { return writes_; }
  int64_t generated() const { return generated_; }
  std::string header(std::string_view name) const {
    for (const auto& [key, value] : headers_)
      if (key == name) return value;
    return "";
  }

  JsonObject json() const {
    Result<Json> parsed = parse_json(body_, "reply");
    EXPECT_TRUE(parsed.ok()) << body_;
    return parsed.ok() && parsed.value().is_object() ? parsed.value().get_object() : JsonObject();
  }
  // The data of all events of a stream; "[DONE]" is left out.
  std::vector<JsonObject> events() const {
    std::vector<JsonObject> all;
    for (size_t at = 0; at < body_.size();) {
      const size_t end = std::min(body_.find("\n\n", at), body_.size());
      const std::string event = body_.substr(at, end - at);
      at = end + 2;
      const size_t data = event.find("data: ");
      EXPECT_NE(data, std::string::npos) << event;
      const std::string text = event.substr(data + 6);
      if (text == "[DONE]") continue;
      Result<Json> parsed = parse_json(text, "event");
      EXPECT_TRUE(parsed.ok()) << text;
      if (parsed.ok()) all.push_back(parsed.value().get_object());
    }
    return all;
  }

 private:
  std::function<void()> close_;
  int status_ = 0, writes_ = 0;
  int64_t generated_ = 0;
  std::string type_, body_;
  HttpHeaders headers_;
  bool ended_ = false;
};

// Takes requests and waits for the test to answer them.
class ScriptedAnswerer final : public Answerer {
 public:
  struct Taken {
    Request request;
    std::shared_ptr<RequestListener> listener;
    bool cancelled = false;
  };

  explicit ScriptedAnswerer(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  std::variant<RequestId, Refusal> submit(Request request,
                                          std::shared_ptr<RequestListener> listener) override {
    if (refusal) return *refusal;
    taken.push_back({std::move(request), std::move(listener)});
    return RequestId(taken.size() - 1);
  }
  void cancel(RequestId id) override { taken[size_t(id)].cancelled = true; }
  int64_t context() const override { return context_length; }

  // Every piece of text as one token, then the end. Listeners are let go, as the service does.
  void answer(size_t index, const std::vector<std::string>& pieces,
              FinishReason finish = FinishReason::stop_token) {
    const auto prompt = int64_t(taken[index].request.prompt.size());
    taken[index].listener->on_prompt(prompt, prompt);
    for (const std::string& piece : pieces) say(index, piece);
    end(index, int64_t(pieces.size()), finish);
  }
  void say(size_t index, const std::string& text) {
    TokenEvent event;
    const std::vector<int32_t> ids = tokenizer_.encode(text);
    event.id = ids.empty() ? 0 : ids[0];
    event.text = text;
    event.logprob = -0.5f;
    if (taken[index].request.top_logprobs > 0) event.top = {{event.id, -0.5f}, {65, -2.0f}};
    const std::shared_ptr<RequestListener> listener = taken[index].listener;
    listener->on_token(event);  // may submit more
  }
  void end(size_t index, int64_t tokens, FinishReason finish) {
    Taken& each = taken[index];
    RequestSummary summary = ending;
    summary.finish = finish;
    summary.prompt_tokens = int64_t(each.request.prompt.size());
    summary.tokens = tokens;
    std::exchange(each.listener, nullptr)->on_finish(summary);
  }

  std::vector<Taken> taken;
  std::optional<Refusal> refusal;
  RequestSummary ending;  // the rest of what is told at the end
  int64_t context_length = 4096;

 private:
  const Tokenizer& tokenizer_;
};

inline std::filesystem::path minnow_path() {
  return std::filesystem::path(SLIP_SOURCE_DIR) / "models" / "minnow";
}

class ApiTest : public ::testing::Test {
 protected:
  static const Tokenizer& tokenizer() {
    static const Tokenizer loaded = Tokenizer::load(minnow_path()).value();
    return loaded;
  }
  static const ChatTemplate& chat_template() {
    static const ChatTemplate loaded = ChatTemplate::load(minnow_path()).value();
    return loaded;
  }
  static ServedModel served() {
    ServedModel model;
    model.names = {"minnow", "org/alias"};
    model.tokenizer = &tokenizer();
    model.chat_template = &chat_template();
    model.defaults = read_generation_defaults(minnow_path()).value();
    model.context = 4096;
    model.created = 1700000000;
    return model;
  }

  ApiTest() { reset({}); }

  void reset(ApiOptions options) {
    options.log = [this](std::string_view note) { notes_.emplace_back(note); };
    api_ = std::make_unique<Api>(served(), std::move(options));
    api_->attach(&engine_);
  }

  std::shared_ptr<RecordedReply> request(const std::string& method, const std::string& path,
                                         const std::string& body = "") {
    auto reply = std::make_shared<RecordedReply>();
    HttpRequest http;
    http.method = method;
    http.path = path;
    http.body = body;
    http.salt = "key";
    for (const ApiRoute& route : api_->routes()) {
      const bool open = route.path.ends_with("/*");
      const bool matches =
          open ? path.starts_with(route.path.substr(0, route.path.size() - 1)) : path == route.path;
      if (route.method != method || !matches) continue;
      route.handler(http, reply);
      return reply;
    }
    ADD_FAILURE() << "no route for " << method << " " << path;
    return reply;
  }
  std::shared_ptr<RecordedReply> post(const std::string& path, const std::string& body) {
    return request("POST", path, body);
  }

  // The last request that the engine got.
  const Request& asked() const { return engine_.taken.back().request; }
  std::string prompt_text() const { return tokenizer().decode(asked().prompt); }

  ScriptedAnswerer engine_{tokenizer()};
  std::vector<std::string> notes_;
  std::unique_ptr<Api> api_;
};

// A reply with everything that differs from run to run replaced.
inline std::string steady(std::string text) {
  text = std::regex_replace(
      text, std::regex("(chatcmpl-|cmpl-|call_|toolu_|msg_|resp_|rs_|fc_)[0-9A-Za-z]{24}"), "$1ID");
  text = std::regex_replace(text, std::regex("\"created(_at)?\": ?[0-9]+"), "\"created$1\":T");
  return std::regex_replace(text, std::regex("\"time_ms\":[0-9]+"), "\"time_ms\":T");
}

}  // namespace slip
