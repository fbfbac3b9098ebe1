// Steps as CUDA graphs: the first pass of a shape is recorded, later ones are replayed. What
// changes from step to step (spans, pages, ids) lies in device memory at fixed places.
#pragma once

#include <list>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/cuda/device/launch.h"
#include "kernels/cuda/device/spans.h"
#include "kernels/ops.h"
#include "tensor/buffer.h"

namespace slip {

class StepGraphs {
 public:
  StepGraphs(const Launcher& launcher, Memory& memory);
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // Room for spans and page tables of steps up to these sizes, and the bytes that it takes.
  void reserve(int64_t spans, int64_t pages);
  static size_t table_bytes(int64_t spans, int64_t pages);

  void run(const StepKey& key, std::span<const Span> spans, const StepBody& body);
  // Whether steps of so many rows are recorded.
  static bool records(int64_t rows);

  void forget(const void* owner);
  // What recordings refer to is about to move.
  void forget_all();

  // Where these spans of the current step were copied to; null if they are not of it.
  const DeviceSpan* table_of(std::span<const Span> spans) const;
  // Positions that the recording must cover; 0 when nothing is being recorded.
  int64_t recorded_context() const { return recorded_context_; }

  // Copies spans to the device now.
  const DeviceSpan* upload(std::span<const Span> spans);

 private:
  struct Shape {
    StepKey key;
    int64_t context = 0;  // class of lengths
    bool record = false;
    std::vector<int64_t> rows;  // of each span
    bool operator==(const Shape&) const = default;
  };
  struct DestroyGraph {  // after its last launch has ended
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph>;
  struct Recorded {
    Shape shape;
    Graph graph;  // null: met once
  };

  // The recording of this shape, if it has been met.
  Recorded* find(const StepKey& key, std::span<const Span> spans);
  void meet(const StepKey& key, std::span<const Span> spans);
  void record(Recorded& recorded, const StepBody& body);

  int device_;
  cudaStream_t stream_;
  Memory& memory_;
  Buffer table_;  // DeviceSpan [spans], then int32 pages
  int64_t max_spans_ = 0, max_pages_ = 0;
  std::vector<std::byte> host_table_;  // what `table_` holds
  std::list<Recorded> recorded_;       // the last used first
  std::span<const Span> current_;      // of the step that runs
  int64_t recorded_context_ = 0;
};

}  // namespace slip
