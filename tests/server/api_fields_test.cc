// Which requests are refused, with what, and which are not.
#include <gmock/gmock.h>

#include "tests/server/api_fixture.h"

namespace slip {
namespace {

using ::testing::HasSubstr;

class ApiFields : public ApiTest {
 protected:
  std::shared_ptr<RecordedReply> chat(const std::string& members) {
    return post("/v1/chat/completions",
                R"({"messages":[{"role":"user","content":"Hi"}],)" + members + "}");
  }
  static Json param_of(const RecordedReply& reply) { return reply.json().at("error").at("param"); }
};

TEST_F(ApiFields, RefusesValuesOutOfRangeByName) {
  const std::pair<const char*, const char*> table[] = {
      {R"("temperature":-0.1)", "temperature"},
      {R"("temperature":2.5)", "temperature"},
      {R"("temperature":"hot")", "temperature"},
      {R"("top_p":1.1)", "top_p"},
      {R"("min_p":-1)", "min_p"},
      {R"("top_k":-2)", "top_k"},
      {R"("top_k":1.5)", "top_k"},
      {R"("presence_penalty":3)", "presence_penalty"},
      {R"("frequency_penalty":-3)", "frequency_penalty"},
      {R"("repetition_penalty":0)", "repetition_penalty"},
      {R"("n":0)", "n"},
      {R"("n":9)", "n"},
      {R"("max_tokens":0)", "max_tokens"},
      {R"("max_completion_tokens":-5)", "max_completion_tokens"},
      {R"("min_tokens":-1)", "min_tokens"},
      {R"("min_tokens":5,"max_tokens":4)", "min_tokens"},
      {R"("stop":["1","2","3","4","5","6","7","8","9","10","11","12","13","14","15","16","17"])",
       "stop"},
      {R"("stop":[1])", "stop"},
      {R"("stop_token_ids":[99999999])", "stop_token_ids"},
      {R"("logit_bias":{"x":1})", "logit_bias"},
      {R"("logit_bias":{"5":101})", "logit_bias.5"},
      {R"("top_logprobs":21)", "top_logprobs"},
      {R"("logprobs":3)", "logprobs"},
      {R"("seed":"x")", "seed"},
      {R"("stream":"yes")", "stream"},
      {R"("stream_options":{"include_usage":1})", "stream_options.include_usage"},
      {R"("tool_choice":"perhaps")", "tool_choice"},
      {R"("tool_choice":"required")", "tool_choice"},
      {R"("tool_choice":{"type":"function","function":{"name":"f"}})", "tool_choice"},
      {R"("tools":[{"type":"web_search"}])", "tools[0].type"},
      {R"("tools":[{"type":"function","function":{}}])", "tools[0].function.name"},
      {R"("response_format":{"type":"xml"})", "response_format.type"},
      {R"("response_format":{"type":"json_schema"})", "response_format.json_schema"},
      {R"("guided_regex":"a","guided_choice":["b"])", "guided_choice"},
      {R"("reasoning_effort":"enormous")", "reasoning_effort"},
      {R"("thinking_token_budget":-2)", "thinking_token_budget"},
      {R"("thinking":{"type":"maybe"})", "thinking.type"},
      {R"("chat_template_kwargs":[])", "chat_template_kwargs"},
      {R"("continue_final_message":true)", "continue_final_message"},
      {R"("model":5)", "model"},
  };
  for (const auto& [members, param] : table) {
    const auto reply = chat(members);
    EXPECT_EQ(reply->status(), 400) << members;
    EXPECT_EQ(param_of(*reply), param) << members << " " << reply->body();
    EXPECT_EQ(reply->json().at("error").at("type"), "invalid_request_error");
  }
  EXPECT_TRUE(engine_.taken.empty());
}

TEST_F(ApiFields, RefusesBadMessagesByPlace) {
  const std::pair<const char*, const char*> table[] = {
      {R"({})", "messages"},
      {R"({"messages":[]})", "messages"},
      {R"({"messages":"hi"})", "messages"},
      {R"({"messages":[3]})", "messages[0]"},
      {R"({"messages":[{"content":"a"}]})", "messages[0].role"},
      {R"({"messages":[{"role":"king","content":"a"}]})", "messages[0].role"},
      {R"({"messages":[{"role":"user","content":5}]})", "messages[0].content"},
      {R"({"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:x"}}]}]})",
       "messages[0].content"},
      {R"({"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1"}]}]})",
       "messages[1].tool_calls"},
  };
  for (const auto& [body, param] : table) {
    const auto reply = post("/v1/chat/completions", body);
    EXPECT_EQ(reply->status(), 400) << body;
    EXPECT_EQ(param_of(*reply), param) << body << " " << reply->body();
  }
  EXPECT_THAT(post("/v1/chat/completions",
                   R"({"messages":[{"role":"user","content":[{"type":"image_url"}]}]})")
                  ->body(),
              HasSubstr("images are not supported"));
}

TEST_F(ApiFields, RefusesBodiesThatAreNoJson) {
  for (const char* body : {"", "{", "[]", "null", "{\"a\":\xff}", "{\"messages\":"}) {
    const auto reply = post("/v1/chat/completions", body);
    EXPECT_EQ(reply->status(), 400) << body;
    EXPECT_TRUE(reply->json().at("error").at("message").is_string());
  }
}

TEST_F(ApiFields, IgnoresUnknownFieldsAndSaysSoOnce) {
  EXPECT_EQ(chat(R"("made_up":1,"stream":true)")->status(), 200);
  EXPECT_EQ(chat(R"("made_up":2,"stream":true)")->status(), 200);
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_THAT(notes_[0], HasSubstr("made_up"));
  // Names are the client's to choose: one line each, and not a long one.
  post("/v1/completions", R"({"prompt": "x", "max_tokens": 1, "a\nb\u001b[2J": 1})");
  post("/v1/completions",
       R"({"prompt": "x", "max_tokens": 1, ")" + std::string(1 << 20, 'n') + R"(": 1})");
  ASSERT_EQ(notes_.size(), 3u);
  EXPECT_THAT(notes_[1], HasSubstr("'a?b?[2J'"));
  EXPECT_LT(notes_[2].size(), 200u);
}

TEST_F(ApiFields, TakesNullForAbsent) {
  const auto reply =
      chat(R"("temperature":null,"stream_options":null,"tools":null,"stop":null,"seed":null,)"
           R"("response_format":null,"tool_choice":null,"max_tokens":null,"logit_bias":null)");
  EXPECT_EQ(engine_.taken.size(), 1u) << reply->body();
}

TEST_F(ApiFields, ReadsEverythingIntoTheRequest) {
  chat(R"("temperature":0.25,"top_p":0.5,"top_k":7,"min_p":0.125,"repetition_penalty":1.5,)"
       R"("presence_penalty":1,"frequency_penalty":-1,"logit_bias":{"5":-100},"seed":42,)"
       R"("max_completion_tokens":9,"max_tokens":5,"min_tokens":2,"stop":["END",""],)"
       R"("stop_token_ids":[11],"cache_salt":"s","cache_prompt":false,"speculative.n_max":0)");
  const Request& request = asked();
  EXPECT_EQ(request.sampling.temperature, 0.25f);
  EXPECT_EQ(request.sampling.top_p, 0.5f);
  EXPECT_EQ(request.sampling.top_k, 7);
  EXPECT_EQ(request.sampling.min_p, 0.125f);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(request.sampling.presence_penalty, 1.0f);
  EXPECT_EQ(request.sampling.frequency_penalty, -1.0f);
  EXPECT_EQ(request.sampling.logit_bias.at(0), (std::pair<int32_t, float>(5, -100.0f)));
  EXPECT_EQ(request.sampling.seed, 42u);
  EXPECT_EQ(request.max_tokens, 9);
  EXPECT_EQ(request.min_tokens, 2);
  EXPECT_EQ(request.stop_ids.back(), 11);
  EXPECT_EQ(request.stop_ids.size(), served().defaults.stop_ids.size() + 1);
  EXPECT_EQ(request.salt, "key\ns");
  EXPECT_FALSE(request.reuse_prefix);
  EXPECT_FALSE(request.draft);
}

TEST_F(ApiFields, TakesTheModelsOwnDefaultsAndRandomSeeds) {
  chat(R"("ignore_eos":true)");
  chat(R"("seed":-1,"speculative.n_max":4)");
  const SamplingOptions defaults = served().defaults.sampling;
  EXPECT_EQ(engine_.taken[0].request.sampling.temperature, defaults.temperature);
  EXPECT_EQ(engine_.taken[0].request.sampling.top_k, defaults.top_k);
  EXPECT_NE(engine_.taken[0].request.sampling.seed, engine_.taken[1].request.sampling.seed);
  EXPECT_TRUE(engine_.taken[0].request.stop_ids.empty());
  EXPECT_EQ(engine_.taken[1].request.stop_ids, served().defaults.stop_ids);
  EXPECT_EQ(engine_.taken[0].request.max_tokens, -1);
  EXPECT_TRUE(engine_.taken[0].request.draft);
  EXPECT_TRUE(engine_.taken[1].request.draft);
}

TEST_F(ApiFields, TellsHowLongAPromptMayBe) {
  engine_.context_length = 100;
  const auto reply = chat(R"("max_tokens":95)");
  EXPECT_EQ(reply->status(), 400);
  const JsonObject error = reply->json().at("error").get_object();
  EXPECT_EQ(error.at("code"), "context_length_exceeded");
  EXPECT_EQ(error.at("n_ctx").to_number<int>(), 100);
  EXPECT_GT(error.at("n_prompt_tokens").to_number<int>(), 5);
  EXPECT_THAT(std::string(error.at("message").get_string()),
              HasSubstr("maximum context length is 100 tokens"));
  engine_.context_length = 4096;
  EXPECT_EQ(chat(R"("max_tokens":95,"stream":true)")->status(), 200);
}

TEST_F(ApiFields, QuotesTheTemplatesRefusal) {
  ApiOptions strict;
  strict.strict_template = true;
  reset(std::move(strict));
  const auto reply =
      post("/v1/chat/completions", R"({"messages":[{"role":"assistant","content":"a"}]})");
  EXPECT_EQ(reply->status(), 400);
  EXPECT_THAT(reply->body(), HasSubstr("No user query found in messages."));
}

TEST_F(ApiFields, KnowsItsModels) {
  auto reply = chat(R"("model":"gpt-7")");
  EXPECT_EQ(reply->status(), 404);
  EXPECT_EQ(reply->json().at("error").at("code"), "model_not_found");
  EXPECT_THAT(reply->body(), HasSubstr("'minnow', 'org/alias'"));
  chat(R"("model":"org/alias")");
  EXPECT_EQ(engine_.taken.size(), 1u);

  reply = request("GET", "/v1/models");
  const JsonObject list = reply->json();
  EXPECT_EQ(list.at("object"), "list");
  EXPECT_EQ(list.at("data").at(0).at("id"), "minnow");
  EXPECT_EQ(list.at("data").at(1).at("id"), "org/alias");
  EXPECT_EQ(list.at("data").at(0).at("max_model_len").to_number<int>(), 4096);
  EXPECT_EQ(list.at("data").at(0).at("meta").at("n_ctx").to_number<int>(), 4096);
  EXPECT_FALSE(list.at("data").at(0).get_object().contains("name"));
  EXPECT_EQ(request("GET", "/v1/models/org%2Falias")->json().at("id"), "org/alias");
  EXPECT_EQ(request("GET", "/v1/models/org/alias")->json().at("id"), "org/alias");
  EXPECT_EQ(request("GET", "/v1/models/other")->status(), 404);
  api_->attach(nullptr);
  EXPECT_EQ(request("GET", "/v1/models")->status(), 200);  // while it is being loaded too
}

TEST_F(ApiFields, TokenizesBothWays) {
  const std::string ids =
      dump_json(post("/tokenize", R"({"content":"Hello <|im_end|>"})")->json().at("tokens"));
  EXPECT_EQ(post("/detokenize", R"({"tokens":)" + ids + "}")->json().at("content"),
            "Hello <|im_end|>");
  const auto count = [&](const char* body) {
    return post("/tokenize", body)->json().at("count").to_number<int>();
  };
  EXPECT_GT(count(R"({"content":"<|im_end|>","parse_special":false})"),
            count(R"({"prompt":"<|im_end|>"})"));
  EXPECT_GT(count(R"({"messages":[{"role":"user","content":"Hi"}]})"), 5);
  EXPECT_EQ(post("/tokenize", R"({"content":"Hi","with_pieces":true})")
                ->json()
                .at("tokens")
                .at(0)
                .at("piece"),
            "Hi");
  EXPECT_EQ(post("/tokenize", "{}")->status(), 400);
  EXPECT_EQ(post("/detokenize", R"({"tokens":[-1]})")->status(), 400);
  EXPECT_EQ(post("/detokenize", "{}")->status(), 400);
}

TEST_F(ApiFields, RefusesEmbeddingsAndDescribesItself) {
  EXPECT_EQ(post("/v1/embeddings", R"({"input":"a"})")->status(), 501);
  const JsonObject props = request("GET", "/props")->json();
  EXPECT_EQ(props.at("default_generation_settings").at("n_ctx").to_number<int>(), 4096);
  EXPECT_EQ(props.at("modalities").at("vision"), Json(false));
  EXPECT_THAT(std::string(props.at("chat_template").get_string()), HasSubstr("<|im_start|>"));
}

}  // namespace
}  // namespace slip
