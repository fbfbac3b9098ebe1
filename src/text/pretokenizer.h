// The "pre_tokenizer" of tokenizer.json: cuts text into the pieces inside which merges happen.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace slip {

class PreTokenizer {
 public:
  // Null, Split by one of two published patterns or by a literal, ByteLevel, Sequences of them.
  static Result<PreTokenizer> read(const Json& json);

  // Where the piece that starts at `begin` ends; always after `begin`. `text` is valid UTF-8 and
  // not empty after `begin`.
  size_t piece_end(std::string_view text, size_t begin) const;

  // Whether the vocabulary spells bytes with the byte-level map.
  bool byte_level() const { return byte_level_; }

 private:
  enum class Split { kNone, kQwen2, kQwen35, kAfterLiteral };

  Status add(const Json& json);
  Status add_split(const JsonObject& object);
  Status add_byte_level(const JsonObject& object);

  Split split_ = Split::kNone;
  std::string literal_;
  bool byte_level_ = false;
};

}  // namespace slip
