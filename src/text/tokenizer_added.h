// Added tokens: literal text such as <|im_end|> that is found before text is split and merged.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace slip {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // left out by decode(..., skip_special)
  bool normalized = true;    // looked for in normalised text, not in the raw text
  bool single_word = false;  // not where a word character stands beside it
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and after it

  // An entry of "added_tokens", or, with the id given apart, of "added_tokens_decoder".
  static Result<AddedToken> read(const Json& json);
  static Result<AddedToken> read(const Json& json, int32_t id);
};

class AddedTokenMatcher {
 public:
  // `text` is what to look for: the token's content, or its normalised form. Not empty.
  void add(const AddedToken& token, std::string_view text);

  // Calls `on_text` and `on_token` for the parts of `text` in order. The leftmost token wins, of
  // those the longest.
  void split(std::string_view text, const std::function<void(std::string_view)>& on_text,
             const std::function<void(int32_t)>& on_token) const;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Match {
    size_t end = 0;
    uint32_t token = kNone;
  };

  uint32_t child_of(uint32_t node, char byte) const;
  Match longest_match(std::string_view text, size_t begin) const;

  std::vector<AddedToken> tokens_;
  // A trie whose root is node 0: which token ends at a node, and node << 8 | byte -> child.
  std::vector<uint32_t> token_at_ = {kNone};
  std::unordered_map<uint64_t, uint32_t> children_;
  std::array<bool, 256> starts_{};  // bytes that some token starts with
};

}  // namespace slip
