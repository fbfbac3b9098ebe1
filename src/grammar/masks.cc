#include "grammar/masks.h"

#include <algorithm>
#include <bit>

namespace slip {
namespace {

constexpr int kNoDepthLimit = 1 << 20;

// Beyond these, places are computed together and nothing is kept. Their product stays below
// kMaxReadings, so that computing apart and together never drop different readings.
constexpr size_t kMaxPlacesApart = 8;
constexpr size_t kMaxReadersApart = 60;

// 64 sets of a vocabulary of 250,000 take 2 MB.
constexpr size_t kMaxKeptSets = 64;
constexpr size_t kMaxKeptPlaces = 4096;

}  // namespace

Masks::Masks(const Program& program, const TokenIndex& tokens)
    : program_(program),
      tokens_(tokens),
      states_(program, tokens.max_token_bytes()),
      path_(size_t(tokens.max_token_bytes()) + 1),
      scratch_(tokens.vocabulary()) {}

void Masks::Found::look_at(const Expansion& here) {
  reach = std::max(reach, here.reach);
  most_readers = std::max(most_readers, here.cut ? kMaxReadings : here.readers.size());
}

void Masks::narrow() {
  narrow_ = true;
  states_.narrow();
}

bool Masks::add_tokens(const std::vector<Place>& places, int64_t most_work, TokenSet& out) {
  work_limit_ = states_.work() + most_work;
  if (!narrow_ && places.size() <= kMaxPlacesApart && add_locally(places, out)) return true;
  Found found{.tokens = &out};
  states_.begin(kMaxCallDepth);
  walk(0, states_.state_of(places, 0), 0, found);
  return !exhausted();
}

// False: at least one place does not allow it. What has been added by then is right all the same.
bool Masks::add_locally(const std::vector<Place>& places, TokenSet& out) {
  for (const Place& place : places) {
    const Local& local = local_at(place);
    if (!local.usable || place.frame->depth + local.reach > kMaxCallDepth) return false;
    for (const int32_t id : local.few) out.add(id);
    for (size_t i = 0; i < local.many.size(); ++i) out.words()[i] |= local.many[i];
    if (place.frame->outermost() || local.endings.empty()) continue;
    states_.begin(kMaxCallDepth);
    const WalkStates::Id after = states_.state_of(place.frame->returns, 0);
    Found found{.tokens = &out};
    found.look_at(states_.expansion(after));
    if (found.most_readers > kMaxReadersApart) return false;
    for (const uint32_t node : local.endings) walk(node, after, 0, found);
    if (found.most_readers > kMaxReadersApart) return false;
  }
  return true;
}

const Masks::Local& Masks::local_at(const Place& place) {
  const int32_t count = representative_count(place.pc, place.count);
  const uint64_t key = uint64_t(uint32_t(place.pc)) << 32 | uint32_t(count);
  if (const auto known = locals_.find(key); known != locals_.end()) return known->second;
  if (kept_sets_ >= kMaxKeptSets || locals_.size() >= kMaxKeptPlaces) {
    locals_.clear();
    kept_sets_ = 0;
  }
  const Local& made = locals_.emplace(key, compute_local(place.pc, count)).first->second;
  kept_sets_ += !made.many.empty();
  return made;
}

Masks::Local Masks::compute_local(int32_t pc, int32_t count) {
  Local local;
  scratch_.clear();
  uint8_t covered_kinds = 0;
  const Instruction& at = program_.code[size_t(pc)];
  for (int kind = 0; kind < kTextKinds; ++kind) {
    if (!(at.text_kinds >> kind & 1)) continue;
    const bool counted = at.op == Instruction::Op::loop;
    const int64_t room = counted ? program_.loops[size_t(at.counter)].max - count
                                 : int64_t(tokens_.max_token_bytes());
    tokens_.add_text_tokens(TextKind(kind), room, scratch_);
    covered_kinds |= uint8_t(1 << kind);
  }
  Found found{.tokens = &scratch_, .endings = &local.endings};
  // A frame without returns stands for any caller.
  states_.begin(kNoDepthLimit);
  const WalkStates::Id start = states_.state_of({{pc, count, FramePtr(new Frame)}}, 0);
  const Expansion& first = states_.expansion(start);
  found.look_at(first);
  if (first.ended) local.endings.push_back(0);
  walk(0, start, covered_kinds, found);
  local.reach = found.reach;
  local.usable = found.most_readers <= kMaxReadersApart && !exhausted();

  const int64_t size = scratch_.size();
  if (size > tokens_.vocabulary() / 64) {
    local.many = scratch_.words();
    return local;
  }
  for (size_t i = 0; i < scratch_.words().size(); ++i)
    for (uint64_t word = scratch_.words()[i]; word; word &= word - 1)
      local.few.push_back(int32_t(i * 64) + std::countr_zero(word));
  return local;
}

// Counts further from a loop's bounds than any token is long allow the same tokens.
int32_t Masks::representative_count(int32_t pc, int32_t count) const {
  const Instruction& at = program_.code[size_t(pc)];
  if (at.counter < 0 || at.op == Instruction::Op::tag) return count;
  const Loop& loop = program_.loops[size_t(at.counter)];
  const int far = tokens_.max_token_bytes() + 1;
  if (count >= loop.min && loop.max - count > far) return loop.min;
  if (loop.min - count > far) return 0;
  return count;
}

// Below `root`, at which `start` holds.
void Masks::walk(uint32_t root, WalkStates::Id start, uint8_t covered_kinds, Found& found) {
  const std::span<const TokenIndex::Node> nodes = tokens_.nodes();
  const uint32_t end = nodes[root].subtree_end;
  path_[0] = start;
  for (uint32_t at = root + 1; at < end && !exhausted();) {
    const TokenIndex::Node& node = nodes[at];
    const size_t level = node.depth - nodes[root].depth;
    const WalkStates::Id state = node.covered & covered_kinds
                                     ? WalkStates::kDead
                                     : states_.after(path_[level - 1], node.byte, level);
    if (state == WalkStates::kDead) {
      at = node.subtree_end;
      continue;
    }
    // A cut may have left out the reading that takes any text, and narrow matchers cut often.
    if ((node.covered_below & states_.text_kinds(state)) && !narrow_ &&
        !states_.expansion(state).cut) {
      for (const int32_t id : tokens_.ids_below(at)) found.tokens->add(id);
      at = node.subtree_end;
      continue;
    }
    path_[level] = state;
    for (const int32_t id : tokens_.ids_at(at)) found.tokens->add(id);
    if (node.subtree_end > at + 1) {
      const Expansion& here = states_.expansion(state);
      found.look_at(here);
      if (found.endings && here.ended) found.endings->push_back(at);
    }
    ++at;
  }
}

}  // namespace slip
