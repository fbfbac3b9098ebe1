#include "slipstream/common/model_flags.h"

#include <climits>

#include "base/ascii.h"
#include "base/repo_id.h"
#include "checkpoint/model_location.h"
#include "models/model_source.h"
#include "slipstream/common/environment.h"

namespace slip {
namespace {

// minnow lies beside the sources, beside an installed binary, or where the environment says.
Result<std::filesystem::path> locate_minnow() {
  std::vector<std::filesystem::path> places;
  if (const auto folder = minnow_folder_override(); !folder.empty()) places.push_back(folder);
  std::error_code ignored;
  const auto binary = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  if (!binary.empty()) {
    places.push_back(binary / ".." / "share" / "slipstream" / "minnow");
    places.push_back(binary / ".." / "models" / "minnow");
  }
  places.emplace_back(SLIP_MINNOW_DIR);
  std::string tried;
  for (const auto& place : places) {
    if (std::filesystem::exists(place / "config.json", ignored)) return place;
    tried += "\n  " + place.string();
  }
  return error("the default model minnow was not found; looked in:", tried,
               "\nname a model: slipstream run FOLDER");
}

}  // namespace

void ModelFlags::add_to(Flags& flags) {
  add_machine_to(flags);
  flags.option("--kv-cache", &kv_cache, "RECIPE", kKvCacheHelp);
  flags.choice("--head", &head, {"keep", "int8"},
               "Format of the output matrix: as in the files, or rounded to 8 bits while loading");
  flags.choice("--shared-experts", &shared_experts, {"keep", "fp8", "int8"},
               "Format of shared experts: as in the files, or rounded to 8 bits while loading");
}

void ModelFlags::add_machine_to(Flags& flags) {
  flags.option("-m,--model", &model, "MODEL",
               "A folder with Hugging Face files, or a repository id in the local Hugging Face "
               "cache; default: minnow, the model that comes along");
  flags.option(
      "--drafter-model", &drafter_model, "MODEL",
      "The drafter, for models whose drafter is a checkpoint of its own (Gemma 4): a folder or "
      "repository id; default: the one beside the model (MODEL-assistant)");
  flags.option("-c,--ctx", &context, "N", "Length of the context in tokens, e.g. 32K");
  flags.option("--memory", &memory, "SIZE", "Memory that the engine may use, e.g. 20G");
  flags.option("-t,--threads", &threads, "N", "Number of threads; default: one per processor");
  flags.option("--device", &device, "auto|cpu|cuda:N",
               "Processor to run on; auto: a GPU if this program can use one");
  flags.choice("--ops", &ops, {"fast", "ref"},
               "Kernels to run with; ref: the slow reference, to check results against");
  flags.choice("--isa", &isa, {"", "amx", "avx512", "avx2", "i8mm", "neon", "portable"},
               "Instruction set of the CPU kernels; default: the best that this processor has");
  flags.choice(
      "--activations", &activations, {"16", "8"},
      "Activation precision in bits where weights are integers, on a CPU: 16 is as good as float, "
      "8 is faster");
}

Status ModelFlags::take_positional(const std::string& word) {
  if (word.empty()) return {};
  if (!model.empty())
    return error("the model is given twice: \"", word, "\" and --model \"", model, "\"");
  model = word;
  return {};
}

Status ModelFlags::check() const {
  constexpr int64_t kMostThreads = 1024;
  if (threads && (*threads < 1 || *threads > kMostThreads))
    return error("--threads must be 1 to ", kMostThreads, ", not ", *threads);
  if (device != "auto" && device != "cpu" && !gpu())
    return error("--device is auto, cpu or cuda:N, not \"", device, "\"");
  if (gpu() && cpu_only())
    return error("--ops ref, --isa and --activations 8 are for --device cpu");
  if (!repository.empty() && !model.empty())
    return error("--from-huggingface-repo ", repository, " and the model ", model,
                 " at once are one too many");
  if (!repository.empty() && !parse_repo_id(repository))
    return error("--from-huggingface-repo takes org/name[@revision], not \"", repository, "\"");
  const Result<MemoryRequest> request = memory_request(*this);
  return request.ok() ? Status() : request.failure();
}

std::string ModelFlags::name() const {
  if (model.empty()) return "minnow";
  const std::filesystem::path path(model);
  return (path.has_filename() ? path : path.parent_path()).filename().string();
}

std::optional<int> ModelFlags::gpu() const {
  std::string_view text = device;
  if (text == "cuda") return 0;
  constexpr std::string_view kPrefix = "cuda:";
  if (!text.starts_with(kPrefix)) return std::nullopt;
  const std::optional<uint64_t> number = parse_decimal(text.substr(kPrefix.size()));
  if (!number || *number > INT_MAX) return std::nullopt;
  return int(*number);
}

bool ModelFlags::cpu_only() const { return ops == "ref" || !isa.empty() || int8_factors() == 1; }

void ModelFlags::add_download_to(Flags& flags) {
  flags.option(
      "--from-huggingface-repo", &repository, "REPO",
      "The model as org/name[@revision]; it is downloaded first if it is not in the cache");
}

Result<std::filesystem::path> locate_model(const std::string& name) {
  if (name.empty() || name == "minnow") return locate_minnow();
  return find_model(name, {.hf_cache_dirs = hugging_face_caches()});
}

Result<std::filesystem::path> locate_model_beside_shapes(const std::string& name) {
  Result<std::filesystem::path> folder = locate_model(name);
  std::error_code ignored;
  if (folder.ok() || parse_repo_id(name) || std::filesystem::exists(name, ignored)) return folder;
  return error(folder.failure().message, ", nor a shape; those are ",
               join(ModelSource::shape_names(), ", "));
}

Result<ModelSource> open_model(const std::filesystem::path& folder, const ModelFlags& flags) {
  if (flags.drafter_model.empty()) return ModelSource::open(folder);
  SLIP_TRY(const std::filesystem::path drafter, locate_model(flags.drafter_model));
  return ModelSource::open(folder, drafter);
}

Result<ModelSource> open_model_or_shape(const ModelFlags& flags) {
  if (ModelSource::is_shape(flags.model)) return ModelSource::synthetic(flags.model);
  SLIP_TRY(const std::filesystem::path folder, locate_model_beside_shapes(flags.model));
  return open_model(folder, flags);
}

Result<std::optional<KvRecipe>> kv_choice(const std::string& name) {
  if (name == "auto") return std::optional<KvRecipe>();
  SLIP_TRY(const KvRecipe recipe, parse_kv_recipe(name));
  return std::optional(recipe);
}

Result<MemoryRequest> memory_request(const ModelFlags& flags) {
  MemoryRequest request;
  SLIP_TRY(request.kv, of_flag("--kv-cache", kv_choice(flags.kv_cache)));
  if (flags.context) {
    SLIP_TRY(const uint64_t context, of_flag("--ctx", parse_context(*flags.context)));
    request.context = int64_t(context);
  }
  if (flags.memory) {
    SLIP_TRY(request.budget, of_flag("--memory", parse_size(*flags.memory)));
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

}  // namespace slip
