#include "environment.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "base/files.h"
#include "checkpoint/model_location.h"
#include "engine/memory_plan.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/cuda_ops.h"
#include "kernels/ref/ref_ops.h"
#include "version.h"

namespace slip {
namespace {

std::filesystem::path path_from(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? std::filesystem::path(value) : std::filesystem::path();
}

std::string text_from(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

// The first of them that is set.
std::string text_from_any(std::initializer_list<const char*> variables) {
  for (const char* variable : variables)
    if (std::string text = text_from(variable); !text.empty()) return text;
  return "";
}

std::string without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin));
}

// Where hf auth login leaves it.
std::string hub_token() {
  if (std::string token = text_from_any({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}); !token.empty())
    return without_blanks(token);
  std::vector<std::filesystem::path> places{path_from("HF_TOKEN_PATH")};
  if (const auto home = path_from("HF_HOME"); !home.empty()) places.push_back(home / "token");
  if (const auto cache = path_from("XDG_CACHE_HOME"); !cache.empty())
    places.push_back(cache / "huggingface" / "token");
  if (const auto home = path_from("HOME"); !home.empty())
    places.push_back(home / ".cache" / "huggingface" / "token");
  for (const auto& place : places) {
    if (place.empty()) continue;
    if (const Result<std::string> text = read_text_file(place, 4096); text.ok())
      return without_blanks(text.value());
  }
  return "";
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    if (std::string part = without_blanks(std::string_view(text).substr(begin, comma - begin));
        !part.empty())
      parts.push_back(std::move(part));
    begin = comma + 1;
  }
  return parts;
}

// minnow lies beside the sources, beside an installed binary, or where the environment says.
Result<std::filesystem::path> locate_minnow() {
  std::vector<std::filesystem::path> places;
  if (const auto folder = path_from("SLIPSTREAM_MINNOW"); !folder.empty()) places.push_back(folder);
  std::error_code ignored;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  if (!binary.empty()) {
    places.push_back(binary / ".." / "share" / "slipstream" / "minnow");
    places.push_back(binary / ".." / "models" / "minnow");
  }
  places.push_back(SLIP_MINNOW_DIR);
  std::string tried;
  for (const auto& place : places) {
    if (std::filesystem::exists(place / "config.json", ignored)) return place;
    tried += "\n  " + place.string();
  }
  return error("the default model minnow was not found; looked in:", tried,
               "\nname a model: slipstream run FOLDER");
}

Result<Isa> chosen_isa(const std::string& name) {
  const std::vector<Isa> available = available_isas();
  if (name.empty()) return available.front();
  for (const Isa isa : available) {
    if (name == "portable" && isa == Isa::portable) return isa;
    if (name == "avx2" && isa == Isa::avx2) return isa;
    if (name == "avx512" && isa == Isa::avx512) return isa;
  }
  return error("--isa ", name, ": this processor does not have it");
}

// "cuda" and "cuda:0" are the first device; nothing for what names no GPU.
std::optional<int> gpu_number(std::string_view device) {
  if (device == "cuda") return 0;
  constexpr std::string_view kPrefix = "cuda:";
  if (!device.starts_with(kPrefix)) return std::nullopt;
  device.remove_prefix(kPrefix.size());
  int number = -1;
  const auto [end, failed] = std::from_chars(device.begin(), device.end(), number);
  if (failed != std::errc() || end != device.end() || number < 0) return std::nullopt;
  return number;
}

// Whether the machine has one, whatever state its driver is in.
bool has_gpu() {
  std::error_code ignored;
  return std::filesystem::exists("/dev/nvidiactl", ignored);
}

// Whether the GPU was asked for, or nothing else was and there is one.
Result<bool> add_cuda(const ModelFlags& flags, Backend& backend) {
  const std::optional<int> asked = gpu_number(flags.device);
  if (!asked && flags.device != "auto" && flags.device != "cpu")
    return error("--device is auto, cpu or cuda:N, not \"", flags.device, "\"");
  const bool cpu_only = flags.ops == "ref" || !flags.isa.empty() || flags.activations == "8";
  if (!asked && (flags.device == "cpu" || cpu_only)) return false;
  if (cpu_only) return error("--ops ref, --isa and --activations 8 are for --device cpu");
  const int device = asked.value_or(0);
  Result<std::unique_ptr<Ops>> ops = make_cuda_ops(device);
  if (!ops.ok()) {
    if (asked) return ops.failure();
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

void ModelFlags::add_to(Flags& flags) {
  add_machine_to(flags);
  flags.option("--kv-cache", &kv_cache, "RECIPE", kKvCacheHelp);
  flags.choice("--head", &head, {"keep", "int8"},
               "The output matrix: as in the files, or rounded to 8 bits per row at load");
  flags.choice("--shared-experts", &shared_experts, {"keep", "fp8", "int8"},
               "Shared experts: as in the files, or rounded to 8 bits at load");
}

void ModelFlags::add_machine_to(Flags& flags) {
  flags.option("-m,--model", &model, "MODEL",
               "A folder with Hugging Face files, or a repository id in the local Hugging Face "
               "cache; without it minnow, the model that comes along");
  flags.option(
      "--drafter-model", &drafter_model, "MODEL",
      "The drafter of a model whose drafter has files of its own, as a folder or repository "
      "id; without it the one beside the model (MODEL-assistant)");
  flags.option("-c,--ctx", &context, "N", "Positions the context holds, e.g. 32K");
  flags.option("--memory", &memory, "SIZE", "Bytes the engine may use, e.g. 20G");
  flags.option("-t,--threads", &threads, "N", "Threads; without it all processors");
  flags.option("--device", &device, "auto|cpu|cuda:N", "Where to run");
  flags.choice("--ops", &ops, {"fast", "ref"}, "ref: the slow reference kernels, to settle doubts");
  flags.choice("--isa", &isa, {"", "avx512", "avx2", "portable"},
               "Instruction set of the CPU kernels; without it the best there is");
  flags.choice(
      "--activations", &activations, {"16", "8"},
      "Bits of what meets integer weights on a CPU: 16 are as good as float, 8 are faster");
}

Status ModelFlags::take_positional(const std::string& word) {
  if (word.empty()) return {};
  if (!model.empty())
    return error("the model is given twice: \"", word, "\" and --model \"", model, "\"");
  model = word;
  return {};
}

void ModelFlags::add_download_to(Flags& flags) {
  flags.option("--from-huggingface-repo", &repository, "REPO",
               "A model as org/name[@revision]; downloaded first if it is not in the cache");
}

Result<std::filesystem::path> locate_model(const std::string& name) {
  if (name.empty() || name == "minnow") return locate_minnow();
  return find_model(name, {.hf_cache_dirs = hugging_face_caches()});
}

Result<ModelSource> open_model(const std::filesystem::path& folder, const ModelFlags& flags) {
  if (flags.drafter_model.empty()) return ModelSource::open(folder);
  SLIP_TRY(const std::filesystem::path drafter, locate_model(flags.drafter_model));
  return ModelSource::open(folder, drafter);
}

Result<ModelSource> open_model_or_shape(const ModelFlags& flags) {
  const std::vector<std::string> shapes = ModelSource::shape_names();
  if (std::find(shapes.begin(), shapes.end(), flags.model) != shapes.end())
    return ModelSource::synthetic(flags.model);
  SLIP_TRY(const std::filesystem::path folder, locate_model(flags.model));
  return open_model(folder, flags);
}

std::vector<std::filesystem::path> hugging_face_caches() {
  std::vector<std::filesystem::path> folders;
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME"})
    if (const auto folder = path_from(variable); !folder.empty()) folders.push_back(folder);
  if (const auto cache = path_from("XDG_CACHE_HOME"); !cache.empty())
    folders.push_back(cache / "huggingface");
  if (const auto home = path_from("HOME"); !home.empty())
    folders.push_back(home / ".cache" / "huggingface");
  return folders;
}

HubSettings hub_settings() {
  HubSettings hub;
  if (std::string endpoint = text_from("HF_ENDPOINT"); !endpoint.empty()) hub.endpoint = endpoint;
  hub.token = hub_token();
  hub.user_agent = cat("slipstream/", kVersion);
  hub.authorities = text_from("SSL_CERT_FILE");
  hub.proxies.for_https = text_from_any({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
  // Not HTTP_PROXY: in a CGI program that is a header of the request.
  hub.proxies.for_http = text_from_any({"http_proxy", "all_proxy", "ALL_PROXY"});
  hub.proxies.except = split_at_commas(text_from_any({"no_proxy", "NO_PROXY"}));
  return hub;
}

Result<std::filesystem::path> hub_folder() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const auto folder = path_from(variable); !folder.empty()) return folder;
  const std::vector<std::filesystem::path> caches = hugging_face_caches();
  if (caches.empty()) return error("there is no place for downloads; set HF_HOME to a folder");
  return caches.front() / "hub";
}

bool is_offline() {
  const std::string value = text_from("HF_HUB_OFFLINE");
  return !value.empty() && value != "0";
}

UserEnvironment user_environment() {
  UserEnvironment user;
  user.no_color = !text_from("NO_COLOR").empty();
  user.terminal = text_from("TERM");
  user.api_key = text_from("SLIPSTREAM_API_KEY");
  std::filesystem::path state = path_from("XDG_STATE_HOME");
  if (const auto home = path_from("HOME"); state.empty() && !home.empty())
    state = home / ".local" / "state";
  if (!state.empty()) user.state_dir = state / "slipstream";
  return user;
}

Result<Backend> make_backend(const ModelFlags& flags) {
  const int64_t threads = flags.threads.value_or(available_threads());
  if (threads < 1 || threads > 1024) return error("--threads must be 1 to 1024, not ", threads);
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
  backend.ops = make_cpu_ops(*backend.pool, backend.isa, flags.activations == "8" ? 1 : 2);
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

Result<std::optional<KvRecipe>> kv_choice(const std::string& name) {
  if (name == "auto") return std::optional<KvRecipe>();
  SLIP_TRY(const KvRecipe recipe, parse_kv_recipe(name));
  return std::optional(recipe);
}

Result<MemoryRequest> memory_request(const ModelFlags& flags) {
  MemoryRequest request;
  SLIP_TRY(request.kv, kv_choice(flags.kv_cache));
  if (flags.context) {
    SLIP_TRY(const uint64_t context, parse_context(*flags.context));
    request.context = int64_t(context);
  }
  if (flags.memory) {
    SLIP_TRY(request.budget, parse_size(*flags.memory));
  }
  return request;
}

WeightChoices weight_choices(const ModelFlags& flags) {
  WeightChoices choices;
  choices.int8_head = flags.head == "int8";
  if (flags.shared_experts == "fp8") choices.shared_experts = WeightFormat::fp8_block;
  if (flags.shared_experts == "int8") choices.shared_experts = WeightFormat::int8_row;
  return choices;
}

LoadProgress loading_bar(const std::string& what) {
  if (!::isatty(STDERR_FILENO)) return {};
  return [what, clock = Stopwatch(), shown = -1.0](uint64_t done, uint64_t total) mutable {
    constexpr double kPatience = 0.5, kInterval = 0.1;
    constexpr int kWidth = 30;
    const double now = clock.seconds();
    const bool last = done == total;
    if (now < kPatience || (!last && now - shown < kInterval)) return;
    shown = now;
    const double share = total ? double(done) / double(total) : 1;
    std::string bar(size_t(share * kWidth), '#');
    bar.resize(kWidth, '.');
    std::fprintf(stderr, "\rloading %s [%s] %3.0f %%  %s  %.1f GB/s ", what.c_str(), bar.c_str(),
                 100 * share, describe_bytes(done).c_str(), double(done) / 1e9 / now);
    if (last) std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
  };
}

}  // namespace slip
