#include "slipstream/doctor/checks.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>

#include "base/clock.h"
#include "base/file_descriptor.h"
#include "base/files.h"
#include "base/threads.h"
#include "engine/memory_plan.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/run/answer.h"
#include "slipstream/run/model.h"

namespace slip {
namespace fs = std::filesystem;
namespace {

// models--org--name, as Hugging Face names the folders of its cache.
constexpr std::string_view kModelPrefix = "models--";

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

fs::path largest_weights(const fs::path& folder) {
  fs::path largest;
  uintmax_t size = 0;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != ".safetensors") continue;
    const uintmax_t bytes = fs::file_size(entry.path(), ignored);
    if (bytes == uintmax_t(-1) || bytes <= size) continue;
    size = bytes;
    largest = entry.path();
  }
  return largest;
}

}  // namespace

Processor describe_processor() {
  Processor processor;
  std::set<std::string> sockets;
  std::set<std::pair<std::string, std::string>> cores;
  std::string socket;
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || colon + 2 > line.size()) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("processor")) ++processor.threads;
    if (line.starts_with("physical id")) sockets.insert(socket = value);
    if (line.starts_with("core id")) cores.insert({socket, value});
  }
  processor.sockets = std::max(1, int(sockets.size()));
  processor.cores = cores.empty() ? processor.threads : int(cores.size());
  processor.usable_threads = available_threads();
  // cgroup v2: "200000 100000" is two processors, "max 100000" no limit.
  std::ifstream limit("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (limit >> quota >> period && period > 0) processor.quota = quota / period;
  return processor;
}

MachineMemory describe_memory() {
  MachineMemory memory;
  memory.page_size = uint64_t(::sysconf(_SC_PAGESIZE));
  memory.total = uint64_t(::sysconf(_SC_PHYS_PAGES)) * memory.page_size;
  memory.available = host_memory().free_bytes();
  const std::string modes = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const size_t open = modes.find('['), close = modes.find(']');
  memory.huge_pages =
      close == std::string::npos ? "unknown" : modes.substr(open + 1, close - open - 1);
  uint64_t limit = 0;
  if (std::ifstream file("/sys/fs/cgroup/memory.max"); file >> limit) memory.limit = limit;
  return memory;
}

Result<DiskSpeed> measure_disk(const fs::path& folder, double seconds) {
  constexpr size_t kBlock = 4 << 20, kAlignment = 4096;
  DiskSpeed speed;
  speed.file = largest_weights(folder);
  if (speed.file.empty()) return error(folder.string(), ": no .safetensors file to read");
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(kAlignment, kBlock),
                                                          &std::free);
  const auto read_all = [&](int descriptor) {
    const Stopwatch clock;
    speed.bytes = 0;
    ssize_t count = 0;
    while ((count = ::read(descriptor, block.get(), kBlock)) > 0) {
      speed.bytes += uint64_t(count);
      if (clock.seconds() > seconds) break;
    }
    speed.bytes_per_second = double(speed.bytes) / std::max(clock.seconds(), 1e-9);
    return count >= 0 && speed.bytes > 0;
  };
  speed.how = "direct";
  if (const FileDescriptor direct(::open(speed.file.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
      direct.is_open() && read_all(direct.get()))
    return speed;
  // Not every file system reads around the page cache; then empty the cache of this file first.
  speed.how = "through the page cache, emptied before";
  const FileDescriptor buffered(::open(speed.file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!buffered.is_open()) return system_error(speed.file, "open");
  ::posix_fadvise(buffered.get(), 0, 0, POSIX_FADV_DONTNEED);
  if (!read_all(buffered.get())) return system_error(speed.file, "read");
  return speed;
}

Result<ModelCheck> check_default_model() {
  const ModelFlags flags;
  ModelCheck check;
  SLIP_TRY(check.folder, locate_model(""));
  SLIP_TRY(TalkingModel model, TalkingModel::open(flags));
  SLIP_TRY_STATUS(model.load(flags, {}, 0));
  check.load_seconds = model.load_seconds();
  GenerateRequest request;
  request.sampling.temperature = 0;
  request.max_tokens = 64;
  request.stop_ids = model.defaults().stop_ids;
  const JsonArray messages{JsonObject{{"role", "user"}, {"content", "Tell me a story."}}};
  SLIP_TRY(ChatPrompt prompt, model.prompt(messages, false));
  request.prompt = std::move(prompt.ids);
  Session session(model.engine());
  SLIP_TRY(const GenerateResult result, generate(session, model.tokenizer(), request, {}));
  check.tokens_per_second = result.decode_rate();
  check.text = result.text;
  return check;
}

std::vector<CacheFolder> look_at_caches(const std::vector<fs::path>& folders) {
  std::vector<CacheFolder> caches;
  std::error_code ignored;
  for (const fs::path& path : folders) {
    CacheFolder cache{.path = path, .exists = fs::is_directory(path, ignored), .models = {}};
    for (const fs::path& hub : {path, path / "hub"}) {
      for (const auto& entry : fs::directory_iterator(hub, ignored)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(kModelPrefix)) continue;
        const std::string id = name.substr(kModelPrefix.size());
        const size_t dashes = id.find("--");
        if (dashes != std::string::npos)
          cache.models.push_back(cat(id.substr(0, dashes), "/", id.substr(dashes + 2)));
      }
    }
    std::sort(cache.models.begin(), cache.models.end());
    caches.push_back(std::move(cache));
  }
  return caches;
}

}  // namespace slip
