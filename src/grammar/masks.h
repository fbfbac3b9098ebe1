// Which tokens fit at a place in a grammar. What depends on the place's own rule alone is computed
// once and kept; only tokens that reach beyond the rule's end are looked at again for each caller.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "grammar/constraint.h"
#include "grammar/matcher.h"
#include "grammar/token_index.h"
#include "grammar/walk_states.h"

namespace slip {

class Masks {
 public:
  Masks(const Program& program, const TokenIndex& tokens);

  // Adds the tokens, other than special ones, that fit at any of the places. False: more work than
  // `most_work` would be needed to find all of them; those that were added fit all the same.
  bool add_tokens(const std::vector<Place>& places, int64_t most_work, TokenSet& out);

  // Follows few readings from now on. To be done with all matchers of a program at once.
  void narrow();
  // As of a matcher.
  int64_t work() const { return states_.work(); }

 private:
  // The tokens that fit at one instruction, whoever called its rule.
  struct Local {
    bool usable = true;  // false: too many readings to keep apart from the other places'
    int reach = 0;       // calls within calls that were looked into
    std::vector<int32_t> few;
    std::vector<uint64_t> many;     // as a set, where `few` would be longer
    std::vector<uint32_t> endings;  // nodes at which the rule has ended, with tokens behind them
  };
  struct Found {
    TokenSet* tokens;
    std::vector<uint32_t>* endings = nullptr;
    int reach = 0;
    size_t most_readers = 0;

    void look_at(const Expansion& here);
  };

  bool add_locally(const std::vector<Place>& places, TokenSet& out);
  const Local& local_at(const Place& place);
  Local compute_local(int32_t pc, int32_t count);
  int32_t representative_count(int32_t pc, int32_t count) const;
  bool exhausted() const { return states_.work() > work_limit_; }
  void walk(uint32_t root, WalkStates::Id start, uint8_t covered_kinds, Found& found);

  const Program& program_;
  const TokenIndex& tokens_;
  WalkStates states_;
  bool narrow_ = false;
  int64_t work_limit_ = 0;                      // of the current mask
  std::unordered_map<uint64_t, Local> locals_;  // by instruction and count
  size_t kept_sets_ = 0;
  std::vector<WalkStates::Id> path_;  // scratch: the states down to a node
  TokenSet scratch_;
};

}  // namespace slip
