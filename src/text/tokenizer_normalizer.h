// The "normalizer" of tokenizer.json: what happens to text before it is split.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace slip {

class Normalizer {
 public:
  // NFC, Replace (of a literal), Prepend, and Sequences of them; `json` may be null.
  static Result<Normalizer> read(const Json& json);

  // `text` is valid UTF-8; the result is a view of it or of `storage`.
  std::string_view apply(std::string_view text, std::string& storage) const;

 private:
  struct Nfc {};
  struct Replace {
    std::string from;
    std::string to;
  };
  struct Prepend {
    std::string prefix;
  };
  using Step = std::variant<Nfc, Replace, Prepend>;

  Status add(const Json& json);

  std::vector<Step> steps_;
};

// Appends `text` with every `from`, which is not empty, replaced.
void append_replaced(std::string_view text, std::string_view from, std::string_view to,
                     std::string& out);

}  // namespace slip
