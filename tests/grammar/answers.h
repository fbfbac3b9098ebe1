// Constraints over the tokenizer of the default model, and answers driven through them.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "grammar/grammar.h"
#include "text/tokenizer.h"

namespace slip {

inline const Tokenizer& minnow_tokenizer() {
  static const Tokenizer tokenizer = Tokenizer::load(SLIP_SOURCE_DIR "/models/minnow").value();
  return tokenizer;
}

inline std::shared_ptr<const TokenIndex> minnow_tokens() {
  static const std::shared_ptr<const TokenIndex> tokens = TokenIndex::make(minnow_tokenizer());
  return tokens;
}

inline int32_t stop_id() { return *minnow_tokenizer().find("<|im_end|>"); }

inline Result<std::unique_ptr<Constraint>> try_constraint(const ConstraintSpec& spec) {
  const int32_t stop = stop_id();
  return make_constraint(spec, minnow_tokens(), std::span(&stop, 1));
}

inline std::unique_ptr<Constraint> constraint_of(const ConstraintSpec& spec) {
  Result<std::unique_ptr<Constraint>> made = try_constraint(spec);
  EXPECT_TRUE(made.ok()) << made.failure().message;
  return made.ok() ? std::move(made).value() : nullptr;
}

inline ConstraintSpec spec_of_schema(const Json& schema, bool strict = false) {
  return {.kind = ConstraintSpec::Kind::json_schema, .schema = schema, .strict = strict};
}
inline ConstraintSpec schema_spec(std::string_view text, bool strict = false) {
  return spec_of_schema(parse_json(text, "schema").value(), strict);
}
inline ConstraintSpec regex_spec(std::string_view pattern) {
  return {.kind = ConstraintSpec::Kind::regex, .text = std::string(pattern)};
}

inline int32_t byte_token(uint8_t byte) {
  static const std::vector<int32_t> ids = [] {
    std::vector<int32_t> found(256, -1);
    for (int32_t id = 0; id < minnow_tokens()->vocabulary(); ++id)
      if (const std::string_view bytes = minnow_tokens()->bytes(id); bytes.size() == 1)
        found[uint8_t(bytes[0])] = id;
    return found;
  }();
  return ids[byte];
}

// How many bytes of `text`, written byte by byte, the constraint lets through.
inline size_t accepted_bytes(Constraint& constraint, std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const int32_t id = byte_token(uint8_t(text[i]));
    if (id < 0 || !constraint.allows(id)) return i;
    constraint.advance(id);
  }
  return text.size();
}

// Whether `text` is a whole answer.
inline bool accepts(const ConstraintSpec& spec, std::string_view text) {
  const std::unique_ptr<Constraint> constraint = constraint_of(spec);
  return constraint && accepted_bytes(*constraint, text) == text.size() &&
         constraint->allows(stop_id());
}

// An answer of random allowed tokens. `closers` are texts that bring it closer to its end: they are
// written, as far as they are allowed, on a coin's side, and always once half of the tokens are
// used. Nothing: it did not come to an end within `max_tokens`.
inline std::optional<std::string> random_answer(Constraint& constraint, std::mt19937& random,
                                                int max_tokens,
                                                const std::vector<std::string>& closers = {
                                                    "\"", "}", "]"}) {
  std::string text;
  for (int step = 0; step < max_tokens; ++step) {
    const bool late = step > max_tokens / 2;
    const TokenSet& allowed = constraint.allowed();
    std::vector<int32_t> ids;
    for (size_t i = 0; i < allowed.words().size(); ++i)
      for (uint64_t word = allowed.words()[i]; word; word &= word - 1)
        ids.push_back(int32_t(i * 64) + std::countr_zero(word));
    EXPECT_FALSE(ids.empty()) << "nothing may follow " << text;
    if (ids.empty()) return std::nullopt;
    const bool may_end = allowed.contains(stop_id());
    if (may_end && (ids.size() == 1 || late || random() % 4 == 0)) return text;
    if (late || random() % 4 == 0) {
      const std::string& closer = closers[random() % closers.size()];
      text += closer.substr(0, accepted_bytes(constraint, closer));
      if (late) continue;
    }
    const int32_t id = ids[random() % ids.size()];
    if (id == stop_id() || !constraint.allows(id)) continue;
    text += minnow_tokens()->bytes(id);
    constraint.advance(id);
  }
  return std::nullopt;
}

}  // namespace slip
