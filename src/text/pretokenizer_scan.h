// Hand-written matchers for the split patterns of published tokenizers. Each finds the end of the
// match that starts at `begin`, with the meaning that leftmost-first alternation with backtracking
// would give, but in one pass.
#pragma once

#include <cstddef>
#include <string_view>

namespace slip {

// The patterns are spelled in pretokenizer.cc. They match at every position of valid UTF-8, so the
// result is after `begin`.
size_t qwen2_piece_end(std::string_view text, size_t begin);
size_t qwen35_piece_end(std::string_view text, size_t begin);

}  // namespace slip
