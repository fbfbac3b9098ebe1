// The ladder's prompts as token ids.
#pragma once

#include <string>
#include <vector>

#include "slipstream/bench/ladder_prompts.h"
#include "slipstream/run/model.h"

namespace slip {

struct LadderTest {
  std::string name;
  std::vector<int32_t> prompt;
  int64_t max_tokens = 0;
};

struct LadderTests {
  std::vector<LadderTest> list;
  std::vector<int32_t> stop_ids;
  int64_t usable_tokens = 0;  // of the vocabulary; the rest is padding

  // Positions that the longest of them takes.
  int64_t context() const;
};

// One message each, as the model's template writes it; the plain text if it has none.
Result<LadderTests> written_tests(const TalkingModel& model,
                                  const std::vector<LadderPrompt>& prompts);

// For models without a tokenizer: ids of no meaning, and answers of a fixed length.
LadderTests meaningless_tests(int64_t vocabulary);

}  // namespace slip
