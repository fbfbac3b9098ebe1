// The "decoder" of tokenizer.json: which bytes a token stands for.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace slip {

class TokenDecoder {
 public:
  // ByteLevel exactly if the pre-tokenizer has it; else Replace (of a literal), ByteFallback, Fuse
  // and Sequences of them.
  static Result<TokenDecoder> read(const Json& json, bool byte_level);

  // Appends the bytes of a token, spelled as in tokenizer.json. True if it is a fallback byte,
  // "<0x0A>", which only makes a character together with its neighbours.
  bool append_bytes(std::string_view content, std::string& out) const;

 private:
  Status add(const Json& json);

  bool byte_level_ = false;
  bool byte_fallback_ = false;
  bool fuse_ = false;
  std::vector<std::pair<std::string, std::string>> replacements_;
};

}  // namespace slip
