// What one rendering owns and may spend. Values are handles into the Heap; everything is freed
// together when the rendering ends, so that a namespace may point at itself and nobody counts
// references.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "text/jinja.h"

namespace slip::jinja {

// The only exception of this folder; thrown below parse and render of Template, caught in them.
struct Failure {
  std::string message;
  bool raised_by_template = false;  // raise_exception(): the message is meant for the client
  int line = 0;                     // set by the parser; the evaluator knows its own line
  bool too_much = false;            // with fewer or shorter variables it might have worked
};

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Failure{cat(parts...)};
}

template <class... Parts>
[[noreturn]] void fail_for_size(const Parts&... parts) {
  throw Failure{.message = cat(parts...), .too_much = true};
}

struct HeapObject {
  virtual ~HeapObject() = default;
};

class Heap {
 public:
  explicit Heap(const Limits& limits) : limits_(limits) {}

  // Counts work, so that no template runs for long. Loops over data pay per element.
  void step(size_t work = 1) {
    if (work > limits_.steps - steps_)
      fail_for_size("the template takes more than ", limits_.steps, " steps");
    steps_ += work;
  }

  void charge_bytes(size_t bytes) {
    if (bytes > limits_.memory - bytes_)
      fail_for_size("the template needs more than ", limits_.memory, " bytes");
    bytes_ += bytes;
  }

  template <class T, class... Parts>
  T* make(Parts&&... parts) {
    charge_bytes(sizeof(T) + sizeof(void*));
    auto owned = std::make_unique<T>(std::forward<Parts>(parts)...);
    T* object = owned.get();
    objects_.push_back(std::move(owned));
    return object;
  }

  size_t depth() const { return depth_; }
  const Limits& limits() const { return limits_; }

  // Held while descending into an expression, a block or a nested value.
  class Descent {
   public:
    explicit Descent(Heap& heap) : heap_(heap) {
      if (heap_.depth_ >= heap_.limits_.depth)
        fail("nested deeper than ", heap_.limits_.depth, " levels");
      ++heap_.depth_;
    }
    ~Descent() { --heap_.depth_; }
    Descent(const Descent&) = delete;
    Descent& operator=(const Descent&) = delete;

   private:
    Heap& heap_;
  };

 private:
  Limits limits_;
  size_t steps_ = 0;
  size_t bytes_ = 0;
  size_t depth_ = 0;
  std::vector<std::unique_ptr<HeapObject>> objects_;
};

}  // namespace slip::jinja
