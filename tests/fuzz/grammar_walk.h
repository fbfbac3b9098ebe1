// For fuzz targets that make constraints: a small vocabulary, and a walk along what is allowed.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "grammar/grammar.h"

namespace slip {

// Printable ASCII, the line break, and some longer tokens; not all bytes of UTF-8.
inline std::shared_ptr<const TokenIndex> small_vocabulary() {
  std::string vocab = R"("Ċ":0,"Ġ":1)";
  int id = 2;
  for (char c = '!'; c < 127; ++c, ++id) {
    const bool escaped = c == '"' || c == '\\';
    vocab += cat(",\"", escaped ? "\\" : "", std::string(1, c), "\":", id);
  }
  for (const char* text :
       {"{\\\"", "\\\":", "\\\",", "ab", "abc", "aa", "12", "true", "null", "]}"})
    vocab += cat(",\"", text, "\":", id++);
  const std::string json = cat(R"({"model":{"type":"BPE","vocab":{)", vocab,
                               R"(},"merges":[]},"decoder":{"type":"ByteLevel"},
      "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"use_regex":false},
      "added_tokens":[{"id":)",
                               id, R"(,"content":"<end>","special":true}]})");
  return TokenIndex::make(Tokenizer::from_json(json, "small vocabulary").value());
}

// Makes the constraint and, where that works, writes some tokens. `choices` picks them.
inline void walk_constraint(const ConstraintSpec& spec, std::string_view choices) {
  static const std::shared_ptr<const TokenIndex> kTokens = small_vocabulary();
  const int32_t stop = kTokens->special_ids().front();
  const Result<std::unique_ptr<Constraint>> made =
      make_constraint(spec, kTokens, std::span(&stop, 1));
  if (!made.ok()) return;
  Constraint& constraint = *made.value();
  for (size_t step = 0; step < 24; ++step) {
    const TokenSet& allowed = constraint.allowed();
    const int64_t size = allowed.size();
    if (size == 0) std::abort();  // a dead end
    int64_t skip = choices.empty() ? 0 : uint8_t(choices[step % choices.size()]) % size;
    int32_t id = 0;
    while (!allowed.contains(id) || skip-- > 0) ++id;
    if (!constraint.allows(id)) std::abort();  // two answers to one question
    if (id == stop) return;
    constraint.advance(id);
  }
}

}  // namespace slip
