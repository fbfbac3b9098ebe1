// The calls that a place in a grammar is inside of. Where several callers call one rule at the same
// byte, they share a frame, so that ambiguous grammars cost what their rules are many, not what
// their readings are many.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace slip {

struct Frame;

// Counts references without atomics: a constraint and its clones are for one thread at a time.
class FramePtr {
 public:
  FramePtr() = default;
  explicit FramePtr(Frame* frame) : frame_(frame) { acquire(); }
  FramePtr(const FramePtr& other) : frame_(other.frame_) { acquire(); }
  FramePtr(FramePtr&& other) noexcept : frame_(std::exchange(other.frame_, nullptr)) {}
  FramePtr& operator=(FramePtr other) noexcept {
    std::swap(frame_, other.frame_);
    return *this;
  }
  ~FramePtr() { release(); }

  Frame& operator*() const { return *frame_; }
  Frame* operator->() const { return frame_; }
  Frame* get() const { return frame_; }
  bool operator==(const FramePtr&) const = default;

 private:
  void acquire();
  void release();

  Frame* frame_ = nullptr;
};

// A place in the rules: an instruction, how often the loop around it has run, and who called.
struct Place {
  int32_t pc;
  int32_t count;
  FramePtr frame;
  bool operator==(const Place&) const = default;
};

struct Frame {
  int32_t references = 0;
  int32_t depth = 0;
  int32_t rule_start = -1;
  std::vector<Place> returns;  // none: the outermost one

  bool outermost() const { return returns.empty(); }
};

inline void FramePtr::acquire() {
  if (frame_) ++frame_->references;
}

// Frames nest at most kMaxCallDepth deep, and so does this.
inline void FramePtr::release() {
  if (frame_ && --frame_->references == 0) delete frame_;
}

}  // namespace slip
