// Golden transcripts of /v1/chat/completions.
#include <gmock/gmock.h>

#include "base/clock.h"
#include "tests/server/api_fixture.h"

namespace slip {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class OpenAiChat : public ApiTest {
 protected:
  static std::string head() {
    return R"(data: {"id":"chatcmpl-ID","object":"chat.completion.chunk","created":T,"model":"minnow","choices":[)";
  }
  static std::string chunk(const std::string& delta, const std::string& finish = "null") {
    return head() + R"({"index":0,"delta":{)" + delta + R"(},"finish_reason":)" + finish +
           "}]}\n\n";
  }
  std::shared_ptr<RecordedReply> stream(const std::string& more = "") {
    return post("/v1/chat/completions",
                R"({"model":"minnow","messages":[{"role":"user","content":"Hi"}],"stream":true)" +
                    more + "}");
  }
  std::shared_ptr<RecordedReply> whole(const std::string& more = "") {
    return post("/v1/chat/completions",
                R"({"model":"minnow","messages":[{"role":"user","content":"Hi"}])" + more + "}");
  }
  // Chunks end with timings unless usage is asked for; these tests look at the rest.
  static std::string without_timings(std::string text) {
    return std::regex_replace(text, std::regex(",\"timings\":\\{[^}]*\\}"), "");
  }
};

const char kWeatherTool[] =
    R"(,"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object",)"
    R"("properties":{"city":{"type":"string"},"days":{"type":"integer"}}}}}])";

TEST_F(OpenAiChat, StreamsOneTokenPerChunk) {
  const auto reply = stream();
  EXPECT_EQ(reply->status(), 200);  // the head is sent at once
  EXPECT_EQ(reply->type(), "text/event-stream");
  EXPECT_EQ(reply->body(), "");  // but nothing that looks like a first token
  engine_.answer(0, {"I ", "think", "</think>", "\n\n", "Hello", " there"});
  EXPECT_EQ(without_timings(steady(reply->body())),
            chunk(R"("role":"assistant","content":"")") + chunk(R"("reasoning_content":"I ")") +
                chunk(R"("reasoning_content":"think")") + chunk(R"("content":"Hello")") +
                chunk(R"("content":" there")") + chunk("", "\"stop\"") + "data: [DONE]\n\n");
  EXPECT_TRUE(reply->ended());
  EXPECT_EQ(reply->generated(), 6);
}

TEST_F(OpenAiChat, SendsUsageOnceAndOnlyIfAsked) {
  auto reply = stream(R"(,"stream_options":{"include_usage":true})");
  engine_.ending.cached_tokens = 3;
  engine_.ending.decode_seconds = 0.5;
  engine_.ending.drafts.drafted = 4;
  engine_.ending.drafts.accepted = 3;
  engine_.answer(0, {"a", "</think>", "b"});
  const std::vector<JsonObject> events = reply->events();
  for (size_t i = 0; i + 1 < events.size(); ++i) {
    EXPECT_FALSE(events[i].contains("usage"));  // not even as null
    EXPECT_FALSE(events[i].contains("timings"));
  }
  const JsonObject& last = events.back();
  EXPECT_TRUE(last.at("choices").get_array().empty());
  const JsonObject& usage = last.at("usage").get_object();
  EXPECT_EQ(usage.at("completion_tokens").to_number<int>(), 3);
  EXPECT_EQ(usage.at("prompt_tokens_details").at("cached_tokens").to_number<int>(), 3);
  EXPECT_EQ(usage.at("completion_tokens_details").at("reasoning_tokens").to_number<int>(), 2);
  const JsonObject& timings = last.at("timings").get_object();
  EXPECT_EQ(timings.at("predicted_ms").to_number<double>(), 500);
  EXPECT_EQ(timings.at("cache_n").to_number<int>(), 3);
  EXPECT_EQ(timings.at("draft_n_accepted").to_number<int>(), 3);

  reply = stream();
  engine_.answer(1, {"b"});
  EXPECT_THAT(reply->body(), Not(HasSubstr("usage")));
  EXPECT_THAT(reply->body(), HasSubstr("\"timings\""));
}

TEST_F(OpenAiChat, StreamsToolCalls) {
  const auto reply = stream(kWeatherTool);
  engine_.answer(0, {"</think>", "\n\n", "<tool_call>", "\n<function=weather>\n",
                     "<parameter=city>\n", "Pa", "ris", "\n</parameter>\n", "<parameter=days>\n",
                     "3", "\n</parameter>\n", "</function>\n", "</tool_call>"});
  std::string name, id, arguments;
  int named = 0;
  for (const JsonObject& event : reply->events()) {
    const JsonObject& delta = event.at("choices").at(0).at("delta").get_object();
    if (delta.contains("content")) {
      EXPECT_EQ(delta.at("content"), "");
    }
    const Json* calls = delta.if_contains("tool_calls");
    if (!calls) continue;
    for (const Json& call : calls->get_array()) {
      EXPECT_EQ(call.at("index").to_number<int>(), 0);
      const JsonObject& function = call.at("function").get_object();
      if (function.contains("name")) {
        ++named;
        name = std::string(function.at("name").get_string());
        id = std::string(call.at("id").get_string());
        EXPECT_EQ(call.at("type"), "function");
      }
      arguments += std::string_view(function.at("arguments").get_string());
    }
  }
  EXPECT_EQ(named, 1);
  EXPECT_EQ(name, "weather");
  EXPECT_THAT(id, ::testing::StartsWith("call_"));
  EXPECT_EQ(parse_json(arguments, "").value(), (JsonObject{{"city", "Paris"}, {"days", 3}}));
  EXPECT_EQ(reply->events().back().at("choices").at(0).at("finish_reason"), "tool_calls");
}

TEST_F(OpenAiChat, ThinkingThatAteAllTokensEndsWithLength) {
  const auto reply = whole(R"(,"max_tokens":3)");
  engine_.answer(0, {"so", " many", " thoughts"}, FinishReason::max_tokens);
  const Json choice = reply->json().at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_EQ(choice.at("message").at("content"), "");
  EXPECT_EQ(choice.at("message").at("reasoning_content"), "so many thoughts");
}

TEST_F(OpenAiChat, RepliesInOnePiece) {
  const auto reply = whole();
  EXPECT_EQ(reply->status(), 0);
  engine_.answer(0, {"hm", "</think>", "Hello"});
  EXPECT_EQ(reply->status(), 200);
  const JsonObject body = reply->json();
  EXPECT_EQ(body.at("object"), "chat.completion");
  EXPECT_EQ(body.at("model"), "minnow");
  EXPECT_EQ(body.at("choices").at(0).at("message"),
            (JsonObject{{"role", "assistant"}, {"reasoning_content", "hm"}, {"content", "Hello"}}));
  EXPECT_EQ(body.at("usage").at("total_tokens").to_number<size_t>(), asked().prompt.size() + 3);
}

TEST_F(OpenAiChat, RepliesWithToolCallsAndNoContent) {
  const auto reply = whole(kWeatherTool);
  engine_.answer(0, {"</think>\n\n<tool_call>\n<function=weather>\n<parameter=city>\nRome\n"
                     "</parameter>\n</function>\n</tool_call>"});
  const Json choice = reply->json().at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "tool_calls");
  EXPECT_TRUE(choice.at("message").at("content").is_null());
  const Json call = choice.at("message").at("tool_calls").at(0);
  EXPECT_EQ(call.at("function").at("name"), "weather");
  EXPECT_EQ(parse_json(call.at("function").at("arguments").get_string(), "").value(),
            (JsonObject{{"city", "Rome"}}));
}

TEST_F(OpenAiChat, CallsNothingThatWasNotOffered) {
  const auto reply = whole();
  const std::string call = "<tool_call>\n<function=weather>\n</function>\n</tool_call>";
  engine_.answer(0, {"hm", "</think>", call});
  const Json choice = reply->json().at("choices").at(0);
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  EXPECT_EQ(choice.at("message").at("content"), Json(call));
  EXPECT_FALSE(choice.at("message").get_object().contains("tool_calls"));
}

TEST_F(OpenAiChat, SendsThoughtsInTheChosenField) {
  const auto deltas = [&](ReasoningField field) {
    ApiOptions options;
    options.reasoning_field = field;
    reset(std::move(options));
    const auto reply = stream();
    engine_.answer(engine_.taken.size() - 1, {"hm", "</think>", "Yes"});
    std::vector<std::string> all;
    for (const JsonObject& event : reply->events())
      all.push_back(dump_json(event.at("choices").at(0).at("delta")));
    return std::vector<std::string>(all.begin() + 1, all.end() - 1);
  };
  EXPECT_THAT(deltas(ReasoningField::reasoning),
              ElementsAre(R"({"reasoning": "hm"})", R"({"content": "Yes"})"));
  EXPECT_THAT(
      deltas(ReasoningField::both),
      ElementsAre(R"({"reasoning_content": "hm", "reasoning": "hm"})", R"({"content": "Yes"})"));
  EXPECT_THAT(deltas(ReasoningField::none),
              ElementsAre(R"({"content": "<think>\nhm"})", R"({"content": "</think>\n\nYes"})"));
}

TEST_F(OpenAiChat, GivesLogprobsWithBytes) {
  auto reply = whole(R"(,"logprobs":true,"top_logprobs":2)");
  EXPECT_EQ(asked().top_logprobs, 2);
  engine_.answer(0, {"</think>", "Hi"});
  const Json entry = reply->json().at("choices").at(0).at("logprobs").at("content").at(1);
  const int32_t id = tokenizer().encode("Hi")[0];
  EXPECT_EQ(entry.at("token"), Json(tokenizer().decode(std::vector<int32_t>{id})));
  EXPECT_EQ(entry.at("logprob").to_number<double>(), -0.5);
  EXPECT_EQ(entry.at("bytes").at(0).to_number<int>(), 'H');
  EXPECT_EQ(entry.at("top_logprobs").get_array().size(), 2u);

  reply = stream(R"(,"logprobs":true)");
  engine_.answer(1, {"</think>", "Hi"});
  int entries = 0;
  for (const JsonObject& event : reply->events())
    if (const Json* logprobs = event.at("choices").at(0).as_object().if_contains("logprobs"))
      entries += int(logprobs->at("content").get_array().size());
  EXPECT_EQ(entries, 2);  // tokens without text too
}

TEST_F(OpenAiChat, GivesTokenIdsProgressAndRunningTimings) {
  const auto reply =
      stream(R"(,"return_token_ids":true,"return_progress":true,"timings_per_token":true)");
  engine_.answer(0, {"a", "</think>", "b"});
  const std::vector<JsonObject> events = reply->events();
  EXPECT_EQ(events[0].at("prompt_token_ids").get_array().size(), asked().prompt.size());
  EXPECT_EQ(events[1].at("prompt_progress").at("total").to_number<size_t>(), asked().prompt.size());
  int ids = 0;
  for (size_t i = 2; i + 1 < events.size(); ++i) {
    ids += int(events[i].at("choices").at(0).at("token_ids").get_array().size());
    EXPECT_EQ(events[i].at("timings").at("predicted_n").to_number<int>(), ids);
  }
  EXPECT_EQ(ids, 3);
}

TEST_F(OpenAiChat, AnswersSeveralChoices) {
  const auto reply = whole(R"(,"n":3,"seed":7)");
  ASSERT_EQ(engine_.taken.size(), 1u);  // the others find its prompt remembered
  engine_.say(0, "a");
  ASSERT_EQ(engine_.taken.size(), 3u);
  EXPECT_EQ(engine_.taken[2].request.sampling.seed, 9u);
  engine_.answer(2, {"</think>c"});
  engine_.end(0, 1, FinishReason::stop_token);
  EXPECT_FALSE(reply->ended());
  engine_.answer(1, {"</think>b"});
  const JsonObject body = reply->json();
  EXPECT_EQ(body.at("choices").at(2).at("message").at("content"), "c");
  EXPECT_EQ(body.at("usage").at("prompt_tokens").to_number<size_t>(), asked().prompt.size());
  EXPECT_EQ(body.at("usage").at("completion_tokens").to_number<int>(), 3);
}

TEST_F(OpenAiChat, EndsAllChoicesWhenOneCannotBeTaken) {
  const auto reply = stream(R"(,"n":2)");
  engine_.refusal = Refusal{Refusal::Kind::queue_full, "full"};
  engine_.say(0, "a");
  EXPECT_TRUE(engine_.taken[0].cancelled);
  EXPECT_EQ(reply->events().back().at("error").at("type"), "rate_limit_error");
}

TEST_F(OpenAiChat, TellsOfFailuresBehindTheHead) {
  const auto reply = stream();
  engine_.say(0, "a");
  engine_.ending.failure = Error{"the engine broke"};
  engine_.end(0, 1, FinishReason::cancelled);
  const JsonObject last = reply->events().back();
  EXPECT_EQ(last.at("error").at("message"), "the engine broke");
  EXPECT_EQ(last.at("error").at("type"), "server_error");
  EXPECT_THAT(reply->body(), Not(HasSubstr("[DONE]")));
  EXPECT_TRUE(reply->ended());
}

TEST_F(OpenAiChat, RepliesWith500IfNothingWasSent) {
  const auto reply = whole();
  engine_.ending.failure = Error{"the engine broke"};
  engine_.end(0, 1, FinishReason::cancelled);
  EXPECT_EQ(reply->status(), 500);
  EXPECT_EQ(reply->json().at("error").at("type"), "server_error");
}

TEST_F(OpenAiChat, CancelsWhenTheClientLeaves) {
  const auto reply = stream(R"(,"n":2)");
  engine_.say(0, "a");
  reply->hang_up();
  EXPECT_TRUE(engine_.taken[0].cancelled);
  EXPECT_TRUE(engine_.taken[1].cancelled);
  const std::string before = reply->body();
  engine_.say(0, "b");
  engine_.end(0, 2, FinishReason::cancelled);
  engine_.end(1, 0, FinishReason::cancelled);
  EXPECT_EQ(reply->body(), before);
  EXPECT_EQ(reply->generated(), 2);  // was computed all the same
}

TEST_F(OpenAiChat, ForgetsAnExchangeWhenItIsOver) {
  auto reply = stream();
  const std::weak_ptr<RecordedReply> watched = reply;
  engine_.answer(0, {"a"});
  reply.reset();
  EXPECT_TRUE(watched.expired());
}

TEST_F(OpenAiChat, RefusesWhatTheEngineRefuses) {
  engine_.refusal = Refusal{Refusal::Kind::queue_full, "256 requests wait already"};
  auto reply = stream();
  EXPECT_EQ(reply->status(), 429);
  EXPECT_EQ(reply->header("Retry-After"), "1");
  EXPECT_EQ(reply->json().at("error").at("type"), "rate_limit_error");
  engine_.refusal = Refusal{Refusal::Kind::stopping, "about to stop"};
  reply = stream();
  EXPECT_EQ(reply->status(), 503);
  EXPECT_EQ(reply->json().at("error").at("type"), "unavailable_error");
  api_->attach(nullptr);
  engine_.refusal.reset();
  reply = stream();
  EXPECT_EQ(reply->status(), 503);
  EXPECT_NE(reply->header("Retry-After"), "");
}

TEST_F(OpenAiChat, FormatsATokenInMicroseconds) {
  const auto reply = stream();
  constexpr int kTokens = 20000;
  const Stopwatch clock;
  for (int i = 0; i < kTokens; ++i) engine_.say(0, " word");
  const double each = clock.seconds() / kTokens;
  engine_.end(0, kTokens, FinishReason::stop_token);
  RecordProperty("microseconds_per_token", std::to_string(each * 1e6));
  std::printf("%.2f us per token\n", each * 1e6);
  EXPECT_LT(each, 100e-6);
}

}  // namespace
}  // namespace slip
