#include "slipstream/bench/ladder_tests.h"

#include <algorithm>

#include "slipstream/bench/arbitrary_ids.h"

namespace slip {

int64_t LadderTests::context() const {
  int64_t most = 0;
  for (const LadderTest& test : list)
    most = std::max(most, int64_t(test.prompt.size()) + test.max_tokens);
  return most;
}

Result<LadderTests> written_tests(const TalkingModel& model,
                                  const std::vector<LadderPrompt>& prompts) {
  LadderTests tests;
  for (const LadderPrompt& prompt : prompts) {
    const JsonArray messages{JsonObject{{"role", "user"}, {"content", prompt.prompt}}};
    // Whether it thinks first is left to the template, as in the recipe: thoughts are tokens too.
    Result<ChatPrompt> chat = model.prompt(messages, std::nullopt);
    std::vector<int32_t> ids;
    if (chat.ok()) {
      ids = std::move(chat).value().ids;
    } else {
      SLIP_TRY(ids, model.encode(prompt.prompt));
    }
    tests.list.push_back({prompt.name, std::move(ids), prompt.max_tokens});
  }
  tests.stop_ids = model.defaults().stop_ids;
  tests.usable_tokens = model.tokenizer()->vocab_size();
  return tests;
}

LadderTests meaningless_tests(int64_t vocabulary) {
  constexpr int64_t kPromptTokens = 32, kAnswerTokens = 128;
  LadderTest test{.name = "random ids",
                  .prompt = arbitrary_ids(kPromptTokens, vocabulary),
                  .max_tokens = kAnswerTokens};
  return {.list = {std::move(test)}, .stop_ids = {}, .usable_tokens = vocabulary};
}

}  // namespace slip
