#include "kernels/cuda/step_graphs.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <utility>

#include "kernels/cuda/device/launch.h"

namespace slip {
namespace {

// A recording serves contexts up to the next power of two: attention then starts blocks for at most
// twice the positions there are, and those without any end at once.
int64_t context_class(std::span<const Span> spans) {
  constexpr int64_t kShortest = 256;
  int64_t longest = kShortest;
  for (const Span& span : spans) longest = std::max(longest, span.start + span.rows);
  return int64_t(std::bit_ceil(uint64_t(longest)));
}

// Long prompts come in all lengths and are worth more than the time to launch them.
constexpr int64_t kMostRecordedRows = 16;

// A recording takes megabytes of the device's memory. Users who come and go, and drafts that are
// more or fewer, make more shapes than there is room for; those that come again are few.
constexpr size_t kMostRecordings = 96;

}  // namespace

bool StepGraphs::records(int64_t rows) { return rows <= kMostRecordedRows; }

StepGraphs::StepGraphs(const Launcher& launcher, Memory& memory)
    : device_(launcher.device), stream_(launcher.stream), memory_(memory) {
  reserve(8, 4096);
}

size_t StepGraphs::table_bytes(int64_t spans, int64_t pages) {
  return size_t(spans) * sizeof(DeviceSpan) + size_t(pages) * sizeof(int32_t);
}

void StepGraphs::reserve(int64_t spans, int64_t pages) {
  if (spans <= max_spans_ && pages <= max_pages_) return;
  check(recorded_context_ == 0, "a recorded step has ", spans, " spans, ", pages, " pages; ",
        max_spans_, " and ", max_pages_, " were reserved");
  max_spans_ = std::max(spans, max_spans_);
  max_pages_ = std::max(pages, max_pages_);
  const size_t bytes = table_bytes(max_spans_, max_pages_);
  table_ = Buffer(memory_, bytes);
  host_table_.assign(bytes, std::byte{0});
  forget_all();  // they name the old table
}

const DeviceSpan* StepGraphs::upload(std::span<const Span> spans) {
  int64_t pages = 0;
  for (const Span& span : spans) pages += int64_t(span.pages.size());
  if (int64_t(spans.size()) > max_spans_ || pages > max_pages_)
    reserve(int64_t(spans.size()), pages);

  std::vector<std::byte>& table = host_table_;
  const size_t pages_at = size_t(max_spans_) * sizeof(DeviceSpan);
  auto* device_pages = reinterpret_cast<int32_t*>(table_.data() + pages_at);
  size_t begin = table.size(), end = 0;  // of what has changed
  const auto put = [&](size_t offset, const void* data, size_t bytes) {
    if (bytes == 0 || std::memcmp(table.data() + offset, data, bytes) == 0) return;
    std::memcpy(table.data() + offset, data, bytes);
    begin = std::min(begin, offset);
    end = std::max(end, offset + bytes);
  };
  int64_t used = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    DeviceSpan entry{};
    entry.start = span.start;
    entry.first_row = int32_t(span.first_row);
    entry.rows = int32_t(span.rows);
    entry.state_slot = span.state_slot;
    entry.record = span.record ? 1 : 0;
    entry.replay = span.replay;
    entry.record_side = span.record_side;
    entry.pages = device_pages + used;
    put(i * sizeof(DeviceSpan), &entry, sizeof(entry));
    put(pages_at + size_t(used) * sizeof(int32_t), span.pages.data(),
        span.pages.size() * sizeof(int32_t));
    used += int64_t(span.pages.size());
  }
  if (begin < end) memory_.upload(table_.data() + begin, table.data() + begin, end - begin);
  return reinterpret_cast<const DeviceSpan*>(table_.data());
}

const DeviceSpan* StepGraphs::table_of(std::span<const Span> spans) const {
  const Span *first = current_.data(), *end = first + current_.size();
  if (std::less{}(spans.data(), first) || !std::less{}(spans.data(), end)) return nullptr;
  return reinterpret_cast<const DeviceSpan*>(table_.data()) + (spans.data() - first);
}

StepGraphs::Recorded* StepGraphs::find(const StepKey& key, std::span<const Span> spans) {
  const int64_t context = context_class(spans);
  const bool record = !spans.empty() && spans[0].record;
  const auto found = std::ranges::find_if(recorded_, [&](const Recorded& recorded) {
    const Shape& shape = recorded.shape;
    return shape.key == key && shape.context == context && shape.record == record &&
           std::ranges::equal(shape.rows, spans, {}, {}, &Span::rows);
  });
  if (found == recorded_.end()) return nullptr;
  recorded_.splice(recorded_.begin(), recorded_, found);
  return &*found;
}

void StepGraphs::meet(const StepKey& key, std::span<const Span> spans) {
  if (recorded_.size() == kMostRecordings) recorded_.pop_back();
  Shape shape{key, context_class(spans), !spans.empty() && spans[0].record, {}};
  for (const Span& span : spans) shape.rows.push_back(span.rows);
  recorded_.push_front({std::move(shape), nullptr});
}

void StepGraphs::run(const StepKey& key, std::span<const Span> spans, const StepBody& body) {
  use_device(device_);
  upload(spans);
  current_ = spans;
  if (!records(key.rows)) {
    body();
  } else if (Recorded* const recorded = find(key, spans)) {
    if (!recorded->graph) record(*recorded, body);
    cuda_check(cudaGraphLaunch(recorded->graph.get(), stream_));
  } else {  // runs as it is: kernels are loaded and their limits set now
    body();
    meet(key, spans);
  }
  current_ = {};
}

void StepGraphs::forget(const void* owner) {
  recorded_.remove_if([&](const Recorded& each) { return each.shape.key.owner == owner; });
}

void StepGraphs::forget_all() { recorded_.clear(); }

void StepGraphs::record(Recorded& recorded, const StepBody& body) {
  recorded_context_ = recorded.shape.context;
  cuda_check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
  body();
  cudaGraph_t graph = nullptr;
  cuda_check(cudaStreamEndCapture(stream_, &graph));
  recorded_context_ = 0;
  cudaGraphExec_t exec = nullptr;
  cuda_check(cudaGraphInstantiate(&exec, graph, 0));
  recorded.graph.reset(exec);
  cudaGraphDestroy(graph);
}

}  // namespace slip
