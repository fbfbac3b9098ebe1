// Which tokens may come next in an answer that has to have a form: JSON of a schema, a regular
// expression, a tool call.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.h"

namespace slip {

// A set of token ids.
class TokenSet {
 public:
  TokenSet() = default;
  explicit TokenSet(int64_t vocabulary) : words_(size_t((vocabulary + 63) / 64)) {}

  bool contains(int32_t id) const {
    return size_t(id) / 64 < words_.size() && words_[size_t(id) / 64] >> (id % 64) & 1;
  }
  void add(int32_t id) { words_[size_t(id) / 64] |= uint64_t(1) << (id % 64); }
  void remove(int32_t id) { words_[size_t(id) / 64] &= ~(uint64_t(1) << (id % 64)); }
  void clear() { words_.assign(words_.size(), 0); }
  int64_t size() const;
  const std::vector<uint64_t>& words() const { return words_; }
  std::vector<uint64_t>& words() { return words_; }

 private:
  std::vector<uint64_t> words_;
};

// Where one answer stands in its grammar. Tokens that end a turn are allowed exactly where the
// answer may end; at least one token is allowed at every place.
class Constraint {
 public:
  virtual ~Constraint() = default;

  // Whether one token may come next; much cheaper than the set.
  virtual bool allows(int32_t id) = 0;
  // All of them. Valid until the next call of any method.
  virtual const TokenSet& allowed() = 0;
  // True while every token is allowed: before the form begins (thoughts, text before a tool call).
  virtual bool free() const { return false; }

  // `id`, which is allowed, was chosen.
  virtual void advance(int32_t id) = 0;

  // Why the answer cannot be held to its form any longer; null while it can. Every token is allowed
  // from then on, and the answer is to be given up.
  virtual const Error* failure() const { return nullptr; }

  // The same place again, to walk ahead along drafts.
  virtual std::unique_ptr<Constraint> clone() const = 0;
};

}  // namespace slip
