// Steps as CUDA graphs: the first pass of a shape is recorded, later ones are replayed. What
// changes from step to step (spans, pages, ids) lies in device memory at fixed places.
#pragma once

#include <cuda_runtime.h>

#include <span>
#include <vector>

#include "kernels/cuda/device/spans.h"
#include "kernels/ops.h"
#include "tensor/buffer.h"

namespace slip {

class StepGraphs {
 public:
  StepGraphs(cudaStream_t stream, Memory& memory);
  ~StepGraphs();
  StepGraphs(const StepGraphs&) = delete;
  StepGraphs& operator=(const StepGraphs&) = delete;

  // Room for spans and page tables of steps up to these sizes.
  void reserve(int64_t spans, int64_t pages);

  void run(const StepKey& key, std::span<const Span> spans, const StepBody& body);
  // Whether steps of so many rows are recorded.
  static bool records(int64_t rows);

  void forget(const void* owner);

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
  struct Recorded {
    Shape shape;
    cudaGraphExec_t graph = nullptr;
    int64_t seen = 0;
  };

  Recorded& find(const StepKey& key, std::span<const Span> spans);
  void record(Recorded& recorded, const StepBody& body);

  cudaStream_t stream_;
  Memory& memory_;
  Buffer table_;  // DeviceSpan [spans], then int32 pages
  int64_t max_spans_ = 0, max_pages_ = 0;
  std::vector<std::byte> host_table_;  // what `table_` holds
  std::vector<Recorded> recorded_;
  std::span<const Span> current_;  // of the step that runs
  int64_t recorded_context_ = 0;
};

}  // namespace slip
