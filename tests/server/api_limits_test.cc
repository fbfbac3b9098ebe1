// Requests that would take much memory or time are refused before they do.
#include <gmock/gmock.h>

#include "server/prompt_limit.h"
#include "tests/server/api_fixture.h"

namespace slip {
namespace {

using ::testing::HasSubstr;

class ApiLimits : public ApiTest {};

std::string repeated(std::string_view text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

TEST_F(ApiLimits, PromptsThatFitAreNeverRefused) {
  std::vector<std::string> texts = {
      "",
      repeated(" ", 5000),
      repeated("\n", 5000),
      repeated("e\xCC\x81", 500),
      repeated("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8", 500),  // Hangul in three parts
      repeated("\xCE\xB1\xCC\x93\xCC\x80\xCD\x85", 500),
      repeated("<|im_end|>", 300),
      "\xCC\x81" + repeated(" ", 3000)};
  for (int32_t id = 0; id < tokenizer().vocab_size(); ++id)
    if (tokenizer().token_bytes(id).size() > 24)
      texts.push_back(repeated(tokenizer().token_bytes(id), 40));
  for (const std::string& text : texts) {
    const auto tokens = int64_t(tokenizer().encode(text).size());
    EXPECT_FALSE(PromptLimit(tokenizer(), [&] { return tokens; }).check(text, "prompt"))
        << text.substr(0, 40);
  }
}

TEST_F(ApiLimits, PromptsThatCannotFitAreNotTokenised) {
  const std::string spaces(1 << 20, ' ');  // of which 128 are one token
  const std::string message = R"("messages":[{"role":"user","content":"a)" + spaces + R"(b"}])";
  for (const auto& [path, body] :
       {std::pair<std::string, std::string>{"/tokenize", R"({"content":")" + spaces + R"("})"},
        {"/tokenize", "{" + message + "}"},
        {"/v1/completions", R"({"prompt":")" + spaces + R"("})"},
        {"/v1/completions", R"({"prompt":"a","suffix":")" + spaces + R"("})"},
        {"/v1/chat/completions", "{" + message + "}"}}) {
    const auto reply = post(path, body);
    EXPECT_EQ(reply->status(), 400) << path;
    const JsonObject error = reply->json().at("error").as_object();
    EXPECT_EQ(error.at("code"), "context_length_exceeded") << path;
    EXPECT_EQ(error.at("n_ctx").to_number<int64_t>(), 4096);
    EXPECT_GT(error.at("n_prompt_tokens").to_number<int64_t>(), 4096);
    EXPECT_THAT(std::string(error.at("message").as_string()), HasSubstr("at least"));
  }
  const auto counted =
      post("/v1/messages/count_tokens", R"({"model":"minnow",)" + message + R"(,"max_tokens":1})");
  EXPECT_EQ(counted->status(), 400);
  EXPECT_THAT(counted->body(), HasSubstr("prompt is too long"));  // Claude Code looks for this
}

TEST_F(ApiLimits, BodiesOfVeryManyValuesAreNotParsed) {
  for (const std::string_view value : {R"({"":0})", "1", "[]", R"("\",,,,,,\\")"}) {
    const auto body = [&](size_t count) {
      std::string list;
      for (size_t i = 0; i < count; ++i) (list += i ? "," : "") += value;
      return R"({"content":"a","x":[)" + list + "]}";
    };
    EXPECT_EQ(post("/tokenize", body(300'000))->status(), 200) << value;
    const auto reply = post("/tokenize", body(1'000'000));
    EXPECT_EQ(reply->status(), 400) << value;
    EXPECT_THAT(reply->body(), HasSubstr("more than 1000000 JSON values"));
  }
}

TEST_F(ApiLimits, AnswersInOnePieceAreNotCollectedForEver) {
  const std::string chat = R"("messages":[{"role":"user","content":"Hi"}])";
  const std::string piece(1 << 20, 'a');
  const auto whole = post("/v1/chat/completions", R"({"n":2,)" + chat + "}");
  engine_.say(0, "a");
  for (int i = 0; i < 70 && whole->status() == 0; ++i) engine_.say(size_t(i % 2), piece);
  EXPECT_EQ(whole->status(), 400);
  EXPECT_THAT(whole->body(), HasSubstr("ask for 'stream'"));
  EXPECT_TRUE(engine_.taken[0].cancelled);
  EXPECT_TRUE(engine_.taken[1].cancelled);

  const auto stream = post("/v1/chat/completions", R"({"stream":true,)" + chat + "}");
  for (int i = 0; i < 70; ++i) engine_.say(2, piece);
  EXPECT_FALSE(stream->ended());
  EXPECT_GT(stream->body().size(), piece.size() * 70);
}

TEST_F(ApiLimits, WhatARequestBringsUponItselfIsNotAnErrorOfTheServer) {
  for (const auto& [failure, status] :
       {std::pair{error("too ambiguous").about("grammar"), 400}, {error("a step failed"), 500}}) {
    const auto reply =
        post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"Hi"}]})");
    engine_.ending.failure = failure;
    engine_.end(engine_.taken.size() - 1, 3, FinishReason::cancelled);
    EXPECT_EQ(reply->status(), status);
    EXPECT_THAT(reply->body(), HasSubstr(failure.message));
  }
}

TEST_F(ApiLimits, LogProbabilitiesCountAsWhatIsSent) {
  const auto reply =
      post("/v1/chat/completions", R"({"logprobs":true,"top_logprobs":20,)"
                                   R"("messages":[{"role":"user","content":"Hi"}]})");
  const std::shared_ptr<RequestListener> listener = engine_.taken[0].listener;
  TokenEvent event{.id = 65, .text = "a", .logprob = -1, .top = {}};
  event.top.assign(20, {65, -1.0f});
  int tokens = 0;
  for (; tokens < 100'000 && reply->status() == 0; ++tokens) listener->on_token(event);
  EXPECT_EQ(reply->status(), 400);
  EXPECT_GT(tokens, 20'000);
  EXPECT_LT(tokens, 50'000);
}

}  // namespace
}  // namespace slip
