// Ends a model's thoughts after a number of tokens: those of the closing tag are then the only ones
// allowed, and the answer goes on from there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "grammar/constraint.h"
#include "text/reasoning.h"
#include "text/tokenizer.h"

namespace slip {

struct ThinkingLimit {
  Thoughts thoughts;  // that the answer begins with, or may
  int64_t tokens;
  bool calls_end_them;  // there are tools; otherwise a call's tag is something thought about
};

class ThinkingBudget final : public Constraint {
 public:
  // `then` (null: free text) sees all tokens, those of the thoughts too, and leaves them free.
  ThinkingBudget(const Tokenizer& tokenizer, const ThinkingLimit& limit,
                 std::unique_ptr<Constraint> then);

  bool allows(int32_t id) override;
  const TokenSet& allowed() override;
  bool free() const override;
  void advance(int32_t id) override;
  const Error* failure() const override { return then_ ? then_->failure() : nullptr; }
  std::unique_ptr<Constraint> clone() const override;

 private:
  // What ends thoughts. Shared by all clones.
  struct Ending {
    std::vector<int32_t> close;    // the tokens of the closing words
    std::vector<int32_t> natural;  // any of these tokens ends thoughts by itself
    std::optional<int32_t> open;   // this token begins them
    int32_t vocabulary;
  };
  ThinkingBudget(const ThinkingBudget& other);

  bool closing() const { return begun_ && left_ == 0 && at_ < ending_->close.size(); }

  std::shared_ptr<const Ending> ending_;
  bool begun_;
  int64_t left_;   // tokens of thought; -1: the thoughts are over
  size_t at_ = 0;  // how much of the ending is written
  std::unique_ptr<Constraint> then_;
  TokenSet one_;
};

}  // namespace slip
