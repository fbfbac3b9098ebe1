#include "grammar/walk_states.h"

#include <algorithm>

namespace slip {
namespace {

size_t hash_of(const std::vector<Place>& places) {
  uint64_t hash = 0;
  for (const Place& place : places) {
    hash ^= uint64_t(uint32_t(place.pc)) << 32 | uint32_t(place.count);
    hash *= 0x9E3779B97F4A7C15u;
    hash ^= reinterpret_cast<uintptr_t>(place.frame.get()) >> 4;
    hash *= 0xC2B2AE3D27D4EB4Fu;
  }
  return size_t(hash >> 40);
}

}  // namespace

WalkStates::WalkStates(const Program& program, int max_level)
    : program_(program),
      matcher_(program),
      states_(kRemembered + size_t(max_level) + 1),
      slots_(kSlots) {}

void WalkStates::begin(int depth_limit) {
  depth_limit_ = depth_limit;
  remembered_ = 0;
  ++stamp_;
}

WalkStates::Id WalkStates::state_of(const std::vector<Place>& places, size_t level) {
  size_t at = hash_of(places) % kSlots;
  for (; slots_[at].stamp == stamp_; at = (at + 1) % kSlots)
    if (states_[size_t(slots_[at].state)].places == places) return slots_[at].state;
  const bool remember = remembered_ < kRemembered;
  const Id id = Id(remember ? remembered_++ : kRemembered + level);
  State& state = states_[size_t(id)];
  state.places = places;
  state.expanded = false;
  state.text_kinds = 0;
  for (const Place& place : places) {
    const Instruction& next = program_.code[size_t(place.pc)];
    if (next.op == Instruction::Op::fork) state.text_kinds |= next.text_kinds;
  }
  if (remember) {
    slots_[at] = {stamp_, id};
    successors_.resize(std::max(successors_.size(), remembered_ * 256));
    std::fill_n(successors_.begin() + ptrdiff_t(id) * 256, 256, kUnknown);
  }
  return id;
}

WalkStates::Id WalkStates::after(Id state, uint8_t byte, size_t level) {
  const bool is_remembered = size_t(state) < kRemembered;
  const size_t known = size_t(state) * 256 + byte;
  if (is_remembered && successors_[known] != kUnknown) return successors_[known];
  matcher_.step(expansion(state), byte, scratch_);
  const Id next = scratch_.empty() ? kDead : state_of(scratch_, level);
  if (is_remembered && next < Id(kRemembered)) successors_[known] = next;
  return next;
}

const Expansion& WalkStates::expansion(Id id) {
  State& state = states_[size_t(id)];
  if (!state.expanded) matcher_.expand(state.places, depth_limit_, state.expansion);
  state.expanded = true;
  return state.expansion;
}

}  // namespace slip
