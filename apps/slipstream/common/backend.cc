#include "slipstream/common/backend.h"

#include <cstdio>
#include <filesystem>

#include "kernels/cpu/cpu_ops.h"
#include "kernels/cuda_ops.h"
#include "kernels/ref/ref_ops.h"

namespace slip {
namespace {

Result<Isa> chosen_isa(const std::string& name) {
  const std::vector<Isa> available = available_isas();
  if (name.empty()) return available.front();
  for (const Isa isa : available)
    if (name == id_of(isa)) return isa;
  return error("--isa ", name, ": this processor does not have it");
}

// Whether the machine has one, whatever state its driver is in.
bool has_gpu() {
  std::error_code ignored;
  return std::filesystem::exists("/dev/nvidiactl", ignored);
}

// Whether the GPU was asked for, or nothing else was and there is one.
Result<bool> add_cuda(const ModelFlags& flags, Backend& backend) {
  const std::optional<int> asked = flags.gpu();
  if (!asked && (flags.device == "cpu" || flags.cpu_only())) return false;
  const int device = asked.value_or(0);
  Result<std::unique_ptr<Ops>> ops = make_cuda_ops(device);
  if (!ops.ok()) {
    if (asked)
      return error("--device cuda:", device, ": ", ops.failure().message,
                   "; --device cpu runs without a GPU");
    if (has_gpu())
      std::fprintf(stderr, "note: the GPU of this machine is not used: %s\n",
                   ops.failure().message.c_str());
    return false;
  }
  backend.ops = std::move(ops).value();
  backend.description = describe_cuda_device(device);
  return true;
}

}  // namespace

Result<Backend> make_backend(const ModelFlags& flags) {
  const int64_t threads = flags.threads.value_or(available_threads());
  Backend backend;
  backend.pool = std::make_unique<ThreadPool>(int(threads));
  SLIP_TRY(backend.isa, chosen_isa(flags.isa));
  SLIP_TRY(const bool on_gpu, add_cuda(flags, backend));
  if (on_gpu) return backend;
  if (flags.ops == "ref") {
    backend.ops = make_ref_ops();
    backend.description = "reference kernels";
    return backend;
  }
  backend.ops = make_cpu_ops(*backend.pool, backend.isa, flags.int8_factors());
  backend.description =
      cat("cpu (", name_of(backend.isa), "), ", threads, threads == 1 ? " thread" : " threads");
  return backend;
}

GpuState look_at_gpu() {
  GpuState gpu{.there = has_gpu(), .description = {}, .why_not = {}};
  const Result<std::unique_ptr<Ops>> ops = make_cuda_ops(0);
  if (ops.ok()) {
    gpu.description = describe_cuda_device(0);
  } else {
    gpu.why_not = ops.failure().message;
  }
  return gpu;
}

}  // namespace slip
