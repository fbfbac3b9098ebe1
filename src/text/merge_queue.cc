#include "text/merge_queue.h"

#include <algorithm>
#include <functional>

namespace slip {
namespace {

// Heaps with the least in front.
template <class T>
void push_least(std::vector<T>& heap, T value) {
  heap.push_back(value);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

template <class T>
T pop_least(std::vector<T>& heap) {
  std::pop_heap(heap.begin(), heap.end(), std::greater<>());
  const T value = heap.back();
  heap.pop_back();
  return value;
}

}  // namespace

void MergeQueue::Line::push(int32_t position) {
  if (rising.empty() || position > rising.back()) {
    rising.push_back(position);
  } else {
    push_least(others, position);
  }
}

int32_t MergeQueue::Line::pop() {
  const bool from_others =
      next == rising.size() || (!others.empty() && others.front() < rising[next]);
  const int32_t position = from_others ? pop_least(others) : rising[next++];
  if (next == rising.size()) {
    rising.clear();
    next = 0;
  }
  return position;
}

void MergeQueue::begin(size_t ranks) {
  for (size_t i = 0; i < used_; ++i) line_number_[lines_[i].rank] = -1;
  used_ = 0;
  line_number_.resize(ranks, -1);
}

MergeQueue::Line& MergeQueue::line_of(uint32_t rank) {
  int32_t& number = line_number_[rank];
  if (number < 0) {
    number = int32_t(used_++);
    if (lines_.size() < used_) lines_.emplace_back();
    lines_[size_t(number)].rank = rank;
  }
  return lines_[size_t(number)];
}

void MergeQueue::push(const Pair& pair) {
  Line& line = line_of(pair.rank);
  if (line.empty()) push_least(waiting_, pair.rank);
  line.push(pair.position);
}

MergeQueue::Pair MergeQueue::pop() {
  const uint32_t rank = waiting_.front();
  Line& line = line_of(rank);
  const int32_t position = line.pop();
  if (line.empty()) pop_least(waiting_);
  return {rank, position};
}

}  // namespace slip
