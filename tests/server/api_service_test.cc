// Chats with minnow itself, through the service.
#include <gmock/gmock.h>

#include <chrono>
#include <condition_variable>
#include <thread>

#include "engine/session.h"
#include "kernels/cpu/cpu_ops.h"
#include "server/metrics_answerer.h"
#include "tests/server/api_fixture.h"

namespace slip {
namespace {

// Waits for the end of a reply, which comes on another thread.
class AwaitedReply final : public HttpReply {
 public:
  void on_close(std::function<void()> callback) override { close_ = std::move(callback); }
  void send(int status, std::string_view, std::string body, const HttpHeaders&) override {
    finish(status, std::move(body));
  }
  void begin(int status, std::string_view, const HttpHeaders&) override {
    const std::lock_guard lock(mutex_);
    status_ = status;
  }
  void write(std::string piece) override {
    const std::lock_guard lock(mutex_);
    body_ += piece;
    changed_.notify_all();
  }
  void end() override { finish(status_, body_); }

  std::string wait() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(120), [&] { return ended_; }));
    return body_;
  }
  void wait_for_text() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds(60), [&] { return !body_.empty(); }));
  }
  void hang_up() { close_(); }
  JsonObject json() { return parse_json(wait(), "reply").value().get_object(); }

 private:
  void finish(int status, std::string body) {
    const std::lock_guard lock(mutex_);
    status_ = status;
    body_ = std::move(body);
    ended_ = true;
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> close_;
  int status_ = 0;
  std::string body_;
  bool ended_ = false;
};

class ApiOnMinnow : public ApiTest {
 protected:
  ApiOnMinnow() {
    const ModelSource source = ModelSource::open(minnow_path()).value();
    EngineOptions options;
    options.memory.context = 1024;
    options.memory.sequences = 4;
    options.memory.checkpoints = 16;
    options.with_drafter = true;
    options.max_drafts = 3;
    engine_ = Engine::load(source, options, *ops_, pool_, {}).value();
    ServiceOptions service;
    service.max_drafts = engine_->max_drafts();
    service_ = std::make_unique<Service>(*engine_, tokenizer(), service);
    answerer_ = std::make_unique<MetricsAnswerer>(*service_, metrics_);
    api_->attach(answerer_.get());
  }

  std::shared_ptr<AwaitedReply> ask(const std::string& path, const std::string& body) {
    auto reply = std::make_shared<AwaitedReply>();
    HttpRequest http;
    http.method = "POST";
    http.path = path;
    http.body = body;
    for (const ApiRoute& route : api_->routes())
      if (route.path == path && route.method == "POST") route.handler(http, reply);
    return reply;
  }
  std::shared_ptr<AwaitedReply> chat(const std::string& members) {
    return ask("/v1/chat/completions",
               R"({"messages":[{"role":"user","content":"What is the capital of France?"}],)"
               R"("temperature":0,)" +
                   members + "}");
  }

  ThreadPool pool_{2};
  std::unique_ptr<Ops> ops_ = make_cpu_ops(pool_, available_isas().front());
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Service> service_;
  Metrics metrics_{"minnow"};
  std::unique_ptr<MetricsAnswerer> answerer_;
};

// The joined pieces of a stream.
std::string joined(const std::string& body, const char* field) {
  std::string text;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\n\n", at);
    const std::string data = body.substr(at + 6, end - at - 6);
    at = end + 2;
    if (data == "[DONE]") break;
    const Json event = parse_json(data, "event").value();
    for (const Json& choice : event.at("choices").get_array())
      if (const Json* piece = choice.at("delta").get_object().if_contains(field))
        text += std::string_view(piece->get_string());
  }
  return text;
}

TEST_F(ApiOnMinnow, StreamsWhatItSaysInOnePiece) {
  const JsonObject body = chat(R"("max_tokens":60)")->json();
  const Json message = body.at("choices").at(0).at("message");
  const std::string stream = chat(R"("max_tokens":60,"stream":true)")->wait();
  EXPECT_EQ(Json(joined(stream, "content")), message.at("content"));
  if (const Json* thoughts = message.get_object().if_contains("reasoning_content")) {
    EXPECT_EQ(Json(joined(stream, "reasoning_content")), *thoughts);
  }
  EXPECT_GT(body.at("usage").at("completion_tokens").to_number<int>(), 5);
}

TEST_F(ApiOnMinnow, EndsAtAStopStringOfTheContent) {
  const Json whole = chat(R"("max_tokens":200)")->json().at("choices").at(0).at("message");
  const std::string content(whole.at("content").get_string());
  ASSERT_GT(content.size(), 2u);
  const Json stop(content.substr(1, 2));
  const JsonObject body = chat(R"("max_tokens":200,"stop":)" + dump_json(stop))->json();
  const Json choice = body.at("choices").at(0);
  EXPECT_EQ(choice.at("message").at("content"), Json(content.substr(0, 1)));
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  const std::string figures = metrics_.expose(service_->stats());
  EXPECT_THAT(figures, ::testing::HasSubstr(R"(finished_reason="stop"} 2)"));
  EXPECT_THAT(figures, ::testing::HasSubstr(R"(finished_reason="abort"} 0)"));
}

TEST_F(ApiOnMinnow, RemembersThePromptOfSiblings) {
  const JsonObject body = chat(R"("max_tokens":8,"n":3,"seed":1)")->json();
  EXPECT_EQ(body.at("choices").get_array().size(), 3u);
  EXPECT_GT(service_->stats().cached_prompt_tokens, 0);
}

TEST_F(ApiOnMinnow, WritesJsonOfASchema) {
  const JsonObject body =
      chat(R"("max_tokens":200,"enable_thinking":false,"response_format":{"type":"json_schema",)"
           R"("json_schema":{"name":"n","schema":{"type":"object","properties":{"city":)"
           R"({"type":"string","maxLength":20},"large":{"type":"boolean"}},)"
           R"("required":["city","large"],"additionalProperties":false}}})")
          ->json();
  const Json choice = body.at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  const Json answer = parse_json(choice.at("message").at("content").get_string(), "answer").value();
  EXPECT_TRUE(answer.at("city").is_string());
  EXPECT_TRUE(answer.at("large").is_bool());
}

TEST_F(ApiOnMinnow, CallsTheToolItMustCall) {
  const JsonObject body =
      chat(
          R"("max_tokens":300,"tool_choice":"required","thinking_token_budget":20,"tools":[{"type":)"
          R"("function","function":{"name":"capital","parameters":{"type":"object","properties":)"
          R"({"country":{"enum":["France","Spain"]}},"required":["country"]}}}])")
          ->json();
  const Json choice = body.at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls") << dump_json(body);
  const Json call = choice.at("message").at("tool_calls").at(0);
  EXPECT_EQ(call.at("function").at("name"), "capital");
  EXPECT_TRUE(parse_json(call.at("function").at("arguments").get_string(), "")
                  .value()
                  .get_object()
                  .contains("country"));
}

TEST_F(ApiOnMinnow, EndsItsThoughtsInTime) {
  const JsonObject body = chat(R"("max_tokens":120,"thinking_token_budget":5)")->json();
  const int thoughts =
      body.at("usage").at("completion_tokens_details").at("reasoning_tokens").to_number<int>();
  EXPECT_LT(thoughts, 30);
  EXPECT_FALSE(body.at("choices").at(0).at("message").at("content").get_string().empty());
}

TEST_F(ApiOnMinnow, GivesLogprobsThatAddUp) {
  const JsonObject body = chat(R"("max_tokens":4,"logprobs":true,"top_logprobs":3)")->json();
  for (const Json& entry : body.at("choices").at(0).at("logprobs").at("content").get_array()) {
    EXPECT_LE(entry.at("logprob").to_number<double>(), 0);
    EXPECT_EQ(entry.at("top_logprobs").get_array().size(), 3u);
    // Greedy: the chosen one is the first.
    EXPECT_EQ(entry.at("top_logprobs").at(0).at("token"), entry.at("token"));
  }
}

// What lm-evaluation-harness asks for: two texts as ids, the second a beginning of the first.
TEST_F(ApiOnMinnow, ScoresTextsForAHarness) {
  const std::vector<int32_t> ids = tokenizer().encode("Once upon a time there was a fox.");
  const auto list = [&](size_t count) {
    return dump_json(Json(JsonArray(ids.begin(), ids.begin() + int64_t(count))));
  };
  const JsonObject body =
      ask("/v1/completions", R"({"temperature":0,"max_tokens":1,"logprobs":1,"seed":1234,)"
                             R"("echo":true,"prompt":[)" +
                                 list(ids.size()) + "," + list(4) + "]}")
          ->json();
  ASSERT_TRUE(service_->drain(5));
  std::vector<float> expected;  // a session's
  Session session(*engine_);
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    ASSERT_TRUE(session.feed({&ids[i], 1}).ok());
    expected.push_back(Logprobs(session.logits()).of(ids[i + 1]));
  }
  for (const size_t choice : {0, 1}) {
    const Json lists = body.at("choices").at(choice).at("logprobs");
    const size_t length = choice == 0 ? ids.size() : 4;
    for (const char* name : {"tokens", "token_logprobs", "top_logprobs", "text_offset"})
      EXPECT_EQ(lists.at(name).get_array().size(), length + 1) << name;  // one token is chosen
    EXPECT_TRUE(lists.at("token_logprobs").at(0).is_null());
    for (size_t i = 1; i < length; ++i)
      EXPECT_NEAR(lists.at("token_logprobs").at(i).to_number<double>(), expected[i - 1], 1e-4);
  }
}

TEST_F(ApiOnMinnow, StopsWhenTheClientLeaves) {
  const auto reply = chat(R"("stream":true,"ignore_eos":true)");
  reply->wait_for_text();
  reply->hang_up();
  for (int i = 0; i < 500 && service_->stats().running > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(service_->stats().running, 0);
}

TEST_F(ApiOnMinnow, AnswersMessagesAndResponses) {
  const JsonObject message =
      ask("/v1/messages",
          R"({"max_tokens":20,"temperature":0,"messages":[{"role":"user","content":"Hello"}]})")
          ->json();
  EXPECT_FALSE(message.at("content").at(0).at("text").get_string().empty());
  const JsonObject response =
      ask("/v1/responses", R"({"input":"Hello","temperature":0,"reasoning":{"effort":"none"},)"
                           R"("max_output_tokens":20})")
          ->json();
  // The same prompt, so the same answer.
  EXPECT_EQ(response.at("output").at(0).at("content").at(0).at("text"),
            message.at("content").at(0).at("text"));
}

}  // namespace
}  // namespace slip
