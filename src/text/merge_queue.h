// Pairs of symbols that wait to be merged: the lowest rank first, then the leftmost.
//
// Each rank has a line of its own. Merging sweeps a text from the left, so pairs mostly come to
// their line from the left too, and taking one costs the same however many wait. A heap of all
// pairs walks through memory for each: a megabyte of one character took two to four
// times as long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace slip {

class MergeQueue {
 public:
  struct Pair {
    uint32_t rank;
    int32_t position;
  };

  // For ranks below `ranks`. The queue is empty.
  void begin(size_t ranks);

  bool empty() const { return waiting_.empty(); }
  void push(const Pair& pair);
  Pair pop();

 private:
  // Positions of the pairs of one rank.
  struct Line {
    uint32_t rank = 0;
    std::vector<int32_t> rising;  // from `next` on
    size_t next = 0;
    std::vector<int32_t> others;  // a heap

    bool empty() const { return next == rising.size() && others.empty(); }
    void push(int32_t position);
    int32_t pop();
  };
  Line& line_of(uint32_t rank);

  std::vector<uint32_t> waiting_;     // a heap: the ranks whose lines are not empty
  std::vector<int32_t> line_number_;  // by rank; -1: none yet
  std::vector<Line> lines_;           // the first `used_`; the rest keep their memory
  size_t used_ = 0;
};

}  // namespace slip
