#include "grammar/matcher.h"

#include <algorithm>

namespace slip {

using Op = Instruction::Op;

namespace {

constexpr size_t kFramesPerWork = 8;  // that are compared in the time a place takes

}  // namespace

bool Matcher::Seen::insert(const Place& place) {
  uint64_t hash = uint64_t(uint32_t(place.pc)) << 32 | uint32_t(place.count);
  hash ^= uint64_t(reinterpret_cast<uintptr_t>(place.frame.get())) >> 4;
  hash *= 0x9E3779B97F4A7C15u;
  for (size_t at = size_t(hash >> 51);; at = (at + 1) % kSlots) {
    Slot& slot = slots_[at];
    if (slot.stamp != stamp_) {
      slot = {stamp_, place.pc, place.count, place.frame.get()};
      ++size_;
      return true;
    }
    if (slot.pc == place.pc && slot.count == place.count && slot.frame == place.frame.get())
      return false;
  }
}

Place Matcher::arrive(int32_t pc, int32_t count, const FramePtr& frame) const {
  const Instruction* at = &program_.code[size_t(pc)];
  if (at->op != Op::loop_next) return {pc, count, frame};
  const Loop& loop = program_.loops[size_t(at->counter)];
  // Without an upper bound, all counts from the lower bound on are alike.
  ++count;
  if (loop.max == INT32_MAX) count = std::min(count, loop.min);
  return {at->next, count, frame};
}

void Matcher::step(const Expansion& from, uint8_t byte, std::vector<Place>& places) {
  places.clear();
  if (!from.first_bytes.contains(byte)) return;
  seen_.clear();
  work_ += int64_t(from.readers.size());
  for (const Place& reader : from.readers) {
    const Instruction& at = program_.code[size_t(reader.pc)];
    if (!program_.sets[size_t(at.other)].contains(byte)) continue;
    Place place = arrive(at.next, reader.count, reader.frame);
    if (seen_.insert(place)) places.push_back(std::move(place));
  }
}

void Matcher::expand(const std::vector<Place>& places, int depth_limit, Expansion& out) {
  out.readers.clear();
  out.tags.clear();
  out.first_bytes = {};
  out.ended = false;
  out.reach = 0;
  seen_.clear();
  fresh_.clear();
  // The last one opened is looked at first, so that readings come in the order of the rules.
  open_.assign(places.rbegin(), places.rend());
  const size_t max_readings = narrow_ ? kFewReadings : kMaxReadings;
  while (!open_.empty() && out.readers.size() < max_readings && !seen_.full()) {
    ++work_;
    const Place place = std::move(open_.back());
    open_.pop_back();
    const int reach = place.frame->depth + program_.code[size_t(place.pc)].height;
    if (reach > depth_limit) continue;
    if (!seen_.insert(place)) continue;
    out.reach = std::max(out.reach, reach);
    visit(place, out);
  }
  out.cut = !open_.empty();
  has_cut_ |= out.cut;
  open_.clear();
  for (const Place& reader : out.readers)
    out.first_bytes |= program_.sets[size_t(program_.code[size_t(reader.pc)].other)];
}

void Matcher::visit(const Place& place, Expansion& out) {
  const Instruction& at = program_.code[size_t(place.pc)];
  switch (at.op) {
    case Op::bytes: out.readers.push_back(place); return;
    case Op::fork:
      open_.push_back(arrive(at.other, place.count, place.frame));
      open_.push_back(arrive(at.next, place.count, place.frame));
      // Of a repetition the rest comes second.
      if (narrow_) std::swap(open_.back(), open_[open_.size() - 2]);
      return;
    case Op::call: visit_call(place, at); return;
    case Op::loop: {
      const Loop& loop = program_.loops[size_t(at.counter)];
      const bool may_end = place.count >= loop.min;
      if (may_end) open_.push_back(arrive(at.other, 0, place.frame));
      if (place.count < loop.max) {
        open_.push_back(arrive(at.next, place.count, place.frame));
        if (narrow_ && may_end) std::swap(open_.back(), open_[open_.size() - 2]);
      }
      return;
    }
    case Op::loop_next: open_.push_back(arrive(place.pc, place.count, place.frame)); return;
    case Op::tag:
      out.tags.push_back(place);
      open_.push_back({at.other, place.count, place.frame});
      return;
    case Op::end:
      if (place.frame->outermost()) out.ended = true;
      for (const Place& after : place.frame->returns) {
        open_.push_back(after);
        if (narrow_ && &after - place.frame->returns.data() >= ptrdiff_t(kFewReadings)) break;
      }
      return;
  }
  unreachable("Op");
}

void Matcher::visit_call(const Place& place, const Instruction& at) {
  const Place after = arrive(at.next, place.count, place.frame);
  if (at.nullable) open_.push_back(after);
  // The last thing a rule does needs no frame of its own: lists may be long without nesting deep.
  if (program_.code[size_t(after.pc)].op == Op::end) {
    open_.push_back({at.other, 0, place.frame});
    return;
  }
  const int depth = place.frame->depth + 1;
  work_ += int64_t(fresh_.size() / kFramesPerWork);
  for (const FramePtr& frame : fresh_)
    if (frame->rule_start == at.other && frame->depth == depth) {
      // Calls that go on alike may add the same return twice; it is followed once.
      frame->returns.push_back(after);
      return;
    }
  const FramePtr frame(new Frame{.depth = depth, .rule_start = at.other, .returns = {after}});
  fresh_.push_back(frame);
  open_.push_back({at.other, 0, frame});
}

}  // namespace slip
