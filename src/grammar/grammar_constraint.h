// A Constraint that follows a program.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "grammar/constraint.h"
#include "grammar/masks.h"
#include "grammar/matcher.h"
#include "grammar/program.h"
#include "grammar/token_index.h"

namespace slip {

class GrammarConstraint final : public Constraint {
 public:
  GrammarConstraint(Program program, std::shared_ptr<const TokenIndex> tokens,
                    std::span<const int32_t> stop_ids);

  bool allows(int32_t id) override;
  const TokenSet& allowed() override;
  bool free() const override;
  void advance(int32_t id) override;
  const Error* failure() const override;
  std::unique_ptr<Constraint> clone() const override;

 private:
  // What a constraint shares with its clones.
  struct Shared {
    Program program;
    std::shared_ptr<const TokenIndex> tokens;
    std::vector<int32_t> stop_ids;
    std::vector<std::optional<int32_t>> tag_ids;  // [tags]: the special token, if there is one
    bool has_free_text = false;                   // and no token has a tag with more behind it
    Matcher matcher;
    Masks masks;
    int64_t credit;       // work that may still be done; see pay()
    int64_t paid = 0;     // of the matchers' work
    bool narrow = false;  // few readings are followed
    std::optional<Error> failure;

    Shared(Program compiled, std::shared_ptr<const TokenIndex> index);
    // Takes the work done since the last time from the credit.
    void pay();
    void follow_few_readings();
    void fail();
  };

  explicit GrammarConstraint(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  bool is_stop(int32_t id) const;
  // Whether a place is in text that is free but for a tag; with `tag_may_have_begun` also where its
  // first bytes have been written.
  bool in_free_text(bool tag_may_have_begun) const;
  const Expansion& following();
  // Leaves the places after the token in after_; none: it does not fit.
  void step_token(int32_t id);
  // Fills allowed_ with what fits by text.
  void find_text_tokens();

  std::shared_ptr<Shared> shared_;
  std::vector<Place> places_;
  Expansion following_;  // of places_, when known
  bool following_known_ = false;
  TokenSet allowed_;
  Expansion scratch_;
  std::vector<Place> after_;
};

}  // namespace slip
