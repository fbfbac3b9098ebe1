// The shortlist: the tokens that drafts choose from. A token that is not on it is never drafted and
// costs one rejection; the output is the same.
#pragma once

#include <filesystem>
#include <vector>

#include "base/result.h"

namespace slip {

// How sure a draft is shows in its distance from the second best.
inline constexpr int64_t kFewestDraftTokens = 2;

// At most `count` ids (kFewestDraftTokens or more), rising. draft_tokens.json in the model's folder
// decides if it is there: a JSON list of ids by falling use, of which the first count. Otherwise
// the tokens that tokenizer.json adds to its vocabulary (turns, thoughts and tool calls begin and
// end with them, and so does the text; at most a quarter of the list), then the lowest ids:
// byte-pair merges are numbered by falling frequency. Empty if the whole vocabulary fits.
Result<std::vector<int32_t>> choose_draft_tokens(const std::filesystem::path& folder,
                                                 int64_t vocabulary, int64_t count);

// The same without files: the lowest ids.
std::vector<int32_t> lowest_tokens(int64_t vocabulary, int64_t count);

}  // namespace slip
