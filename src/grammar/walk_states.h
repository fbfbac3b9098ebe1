// The states that a walk over the tree of tokens comes through. Most tokens lead to few different
// ones, so that each is expanded once and its successors are remembered.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/matcher.h"

namespace slip {

class WalkStates {
 public:
  using Id = int32_t;
  static constexpr Id kDead = -1;

  // `max_level`: how long the tokens are.
  WalkStates(const Program& program, int max_level);

  // Forgets all states.
  void begin(int depth_limit);
  Id state_of(const std::vector<Place>& places, size_t level);
  // The state after one more byte, at `level` bytes from the start; valid until the next one at the
  // same level.
  Id after(Id state, uint8_t byte, size_t level);
  const Expansion& expansion(Id id);
  void narrow() { matcher_.narrow(); }
  int64_t work() const { return matcher_.work(); }
  // The kinds of text of which any amount may follow.
  uint8_t text_kinds(Id state) const { return states_[size_t(state)].text_kinds; }

 private:
  // 1 KB of successors each. States beyond are kept one per level and forgotten.
  static constexpr size_t kRemembered = 2048;
  static constexpr size_t kSlots = 8192;
  static constexpr int32_t kUnknown = -2;

  struct State {
    std::vector<Place> places;
    Expansion expansion;
    bool expanded = false;
    uint8_t text_kinds = 0;
  };
  struct Slot {
    uint32_t stamp = 0;
    Id state = kDead;
  };

  const Program& program_;
  Matcher matcher_;
  int depth_limit_ = 0;
  size_t remembered_ = 0;
  std::vector<State> states_;  // the remembered ones, then one per level
  std::vector<int32_t> successors_;
  std::vector<Slot> slots_;
  uint32_t stamp_ = 0;
  std::vector<Place> scratch_;
};

}  // namespace slip
