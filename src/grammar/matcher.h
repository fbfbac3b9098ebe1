// Runs a program over bytes. All readings of the text so far are followed at once: no way back is
// ever taken, and the work per byte is bounded.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/frames.h"
#include "grammar/program.h"

namespace slip {

// Readings beyond this many at one byte are dropped. Each reading that is kept can be completed, so
// that the answer still has the right form.
inline constexpr size_t kMaxReadings = 512;
inline constexpr size_t kFewReadings = 8;  // once a grammar has proved too ambiguous

// What may follow some places.
struct Expansion {
  std::vector<Place> readers;  // at instructions that read a byte
  std::vector<Place> tags;     // at instructions that take a special token
  ByteSet first_bytes;         // of all readers
  bool ended = false;          // the outermost rule may end here
  bool cut = false;            // there are more readings than were followed
  int reach = 0;               // the deepest call, counted from depth 0, that a check looked at
};

class Matcher {
 public:
  explicit Matcher(const Program& program) : program_(program) {}

  // From now on few readings are followed, those that end soon first.
  void narrow() { narrow_ = true; }
  // Places looked at so far, a measure of the time: some ten nanoseconds each.
  int64_t work() const { return work_; }
  // Whether any expansion so far was cut.
  bool has_cut() const { return has_cut_; }

  // With `depth_limit` the checks of nesting can be put off: see Expansion::reach.
  void expand(const std::vector<Place>& places, int depth_limit, Expansion& out);

  // The places after one more byte; none: the byte does not fit.
  void step(const Expansion& from, uint8_t byte, std::vector<Place>& places);

  // Where the instruction at pc leads without reading: counts loops.
  Place arrive(int32_t pc, int32_t count, const FramePtr& frame) const;

 private:
  // Places that an expansion or a step has met; emptied by a new stamp.
  class Seen {
   public:
    Seen() : slots_(kSlots) {}
    void clear() {
      ++stamp_;
      size_ = 0;
    }
    bool full() const { return size_ > kSlots / 2; }
    bool insert(const Place& place);

   private:
    static constexpr size_t kSlots = 8192;
    struct Slot {
      uint32_t stamp = 0;
      int32_t pc;
      int32_t count;
      const Frame* frame;
    };
    std::vector<Slot> slots_;
    uint32_t stamp_ = 0;
    size_t size_ = 0;
  };

  void visit(const Place& place, Expansion& out);
  void visit_call(const Place& place, const Instruction& at);

  const Program& program_;
  bool narrow_ = false;
  bool has_cut_ = false;
  int64_t work_ = 0;
  Seen seen_;
  std::vector<Place> open_;
  std::vector<FramePtr> fresh_;  // frames of rules called in this expansion
};

}  // namespace slip
