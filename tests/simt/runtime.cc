#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "tests/simt/include/cuda_runtime.h"

using Work = std::function<void()>;
using Clock = std::chrono::steady_clock;

struct SimtStream {
  int device = 0;
  std::deque<Work> work;
  bool capturing = false;
  std::vector<Work> captured;
};

struct SimtEvent {
  SimtStream* stream = nullptr;  // where it was recorded last and has not been reached
  Clock::time_point reached;
};

struct SimtGraph {
  std::vector<Work> work;
};

namespace {

constexpr size_t kPlainShared = size_t{48} << 10;
constexpr size_t kAlignment = 256;

struct Device {
  const char* name;
  int major, minor, multiprocessors;
  size_t shared;
  bool integrated;
};
constexpr Device kDevices[] = {{"large GPU on a CPU", 9, 0, 12, 232448, false},
                               {"small GPU on a CPU", 12, 1, 5, 101376, true}};
thread_local int device = 0;

// Everything that several threads may change.
struct Shared {
  std::recursive_mutex mutex;
  std::set<SimtStream*> streams;
  std::map<const std::byte*, size_t> allocated;  // of the device
  std::map<const std::byte*, size_t> pinned;
  std::unordered_map<const void*, size_t> most_shared;  // of kernels
};
Shared& shared() {
  static Shared all;
  return all;
}
using Lock = std::lock_guard<std::recursive_mutex>;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "simt: %s\n", what);
  std::abort();
}

void finish(SimtStream& stream) {
  if (stream.capturing) fail("a stream is waited for while it is recorded");
  while (!stream.work.empty()) {
    const Work next = std::move(stream.work.front());
    stream.work.pop_front();
    next();
  }
}

cudaError_t put(SimtStream* stream, Work work) {
  const Lock lock(shared().mutex);
  (stream->capturing ? stream->captured.push_back(std::move(work))
                     : stream->work.push_back(std::move(work)));
  return cudaSuccess;
}

bool is_in(const std::map<const std::byte*, size_t>& ranges, const void* data) {
  const auto* at = static_cast<const std::byte*>(data);
  const auto after = ranges.upper_bound(at);
  if (after == ranges.begin()) return false;
  const auto& [begin, bytes] = *std::prev(after);
  return at < begin + bytes;
}

// Memory with a margin on both sides that nobody writes.
constexpr std::byte kMargin{0xa5};

std::byte* allocate(size_t bytes) {
  const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment + 2 * kAlignment;
  auto* begin = static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole));
  if (!begin) return nullptr;
  std::fill_n(begin, kAlignment, kMargin);
  std::fill(begin + kAlignment + bytes, begin + whole, kMargin);
  std::memset(begin + kAlignment, 0xff, bytes);
  return begin + kAlignment;
}

void release(std::byte* data, size_t bytes) {
  std::byte* begin = data - kAlignment;
  const size_t whole = (bytes + kAlignment - 1) / kAlignment * kAlignment + 2 * kAlignment;
  const auto untouched = [](std::byte byte) { return byte == kMargin; };
  if (!std::all_of(begin, data, untouched) || !std::all_of(data + bytes, begin + whole, untouched))
    fail("somebody wrote beside what was allocated");
  std::free(begin);
}

cudaError_t take(void** data, size_t bytes, std::map<const std::byte*, size_t>& into) {
  std::byte* memory = allocate(bytes);
  if (!memory) return cudaErrorMemoryAllocation;
  const Lock lock(shared().mutex);
  into[memory] = bytes;
  *data = memory;
  return cudaSuccess;
}

cudaError_t give_back(void* data, std::map<const std::byte*, size_t>& from) {
  if (!data) return cudaSuccess;
  const Lock lock(shared().mutex);
  for (SimtStream* stream : shared().streams)
    if (!stream->capturing) finish(*stream);
  const auto found = from.find(static_cast<std::byte*>(data));
  if (found == from.end()) return cudaErrorInvalidValue;
  release(static_cast<std::byte*>(data), found->second);
  from.erase(found);
  return cudaSuccess;
}

}  // namespace

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorInvalidValue            ? "invalid argument"
         : error == cudaErrorInvalidResourceHandle ? "invalid resource handle"
         : error == cudaErrorMemoryAllocation      ? "out of memory"
                                                   : "no error";
}
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = int(std::size(kDevices));
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int which) {
  if (which < 0 || which >= int(std::size(kDevices))) return cudaErrorInvalidValue;
  device = which;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int which) {
  const Device& from = kDevices[which];
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "%s", from.name);
  properties->major = from.major;
  properties->minor = from.minor;
  properties->multiProcessorCount = from.multiprocessors;
  properties->sharedMemPerBlockOptin = from.shared;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int which) {
  *value = kDevices[which].integrated ? 1 : 0;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = size_t{8} << 30;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new SimtStream;
  (*stream)->device = device;
  const Lock lock(shared().mutex);
  shared().streams.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock(shared().mutex);
  finish(*stream);
  shared().streams.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const Lock lock(shared().mutex);
  finish(*stream);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new SimtEvent;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  cudaEventSynchronize(event);
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->stream = stream;
  return put(stream, [event] {
    event->reached = Clock::now();
    event->stream = nullptr;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Lock lock(shared().mutex);
  if (event->stream) finish(*event->stream);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const std::chrono::duration<float, std::milli> time = end->reached - begin->reached;
  *milliseconds = time.count();
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream->capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  const Lock lock(shared().mutex);
  if (stream->capturing) return cudaErrorInvalidValue;
  stream->capturing = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock(shared().mutex);
  *graph = new SimtGraph{std::move(stream->captured)};
  stream->captured.clear();
  stream->capturing = false;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned) {
  *exec = new SimtGraph(*graph);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  if (stream->device != device) return cudaErrorInvalidResourceHandle;
  for (const Work& work : exec->work) put(stream, work);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) { return cudaGraphDestroy(exec); }

cudaError_t cudaMalloc(void** data, size_t bytes) { return take(data, bytes, shared().allocated); }
cudaError_t cudaFree(void* data) { return give_back(data, shared().allocated); }
cudaError_t cudaMallocHost(void** data, size_t bytes) { return take(data, bytes, shared().pinned); }
cudaError_t cudaFreeHost(void* data) { return give_back(data, shared().pinned); }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const Lock lock(shared().mutex);
  // What the driver copies before it returns: the rest is read when its turn comes.
  const bool at_once =
      kind == cudaMemcpyHostToDevice && !stream->capturing && !is_in(shared().pinned, from);
  if (!at_once) return put(stream, [=] { std::memcpy(to, from, bytes); });
  const auto* data = static_cast<const std::byte*>(from);
  return put(stream, [to, copy = std::vector<std::byte>(data, data + bytes)] {
    std::memcpy(to, copy.data(), copy.size());
  });
}
cudaError_t cudaMemsetAsync(void* data, int byte, size_t bytes, cudaStream_t stream) {
  return put(stream, [=] { std::memset(data, byte, bytes); });
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (size_t(value) > kDevices[device].shared) return cudaErrorInvalidValue;
  const Lock lock(shared().mutex);
  shared().most_shared[kernel] = size_t(value);
  return cudaSuccess;
}

cudaError_t simt::launch(const cudaLaunchConfig_t& config, const void* kernel, Work call) {
  const dim3 grid = config.gridDim, block = config.blockDim;
  if (config.stream->device != device) return cudaErrorInvalidResourceHandle;
  const Lock lock(shared().mutex);
  const auto asked = shared().most_shared.find(kernel);
  const size_t allowed =
      asked == shared().most_shared.end() ? kPlainShared : std::max(kPlainShared, asked->second);
  if (size_t(grid.x) * grid.y * grid.z == 0 || grid.y > 65535 || grid.z > 65535 ||
      size_t(block.x) * block.y * block.z == 0 || size_t(block.x) * block.y * block.z > 1024 ||
      config.dynamicSmemBytes > allowed)
    return cudaErrorInvalidValue;
  return put(config.stream, [=, shared_bytes = config.dynamicSmemBytes] {
    run_grid({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes, call);
  });
}
