// Which model, in which number formats, with how much memory: the flags, and what they lead to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "engine/session.h"
#include "slipstream/common/flags.h"

namespace slip {

// What --kv-cache takes.
inline constexpr const char* kKvCacheHelp =
    "Number format of the cache of keys and values: f32, bf16, fp8, int8, or TurboQuant codes with "
    "8, 4, 3 or 2 bits for keys and for values, such as k4v4 or k8v4; auto is bf16, but f32 in "
    "eval "
    "and for one user on a CPU";

// Flags that every verb with a model has.
struct ModelFlags {
  std::string model;            // folder, Hugging Face repo id, or empty for minnow
  std::string repository;       // --from-huggingface-repo
  std::string drafter_model;    // folder or repo id of a drafter with files of its own
  std::string device = "auto";  // auto, cpu, cuda:N
  std::string ops = "fast";     // fast, ref
  std::string isa;              // empty: the best there is
  std::string activations = "16";
  std::optional<int64_t> threads;
  std::optional<std::string> context;
  std::optional<std::string> memory;
  std::string kv_cache = "auto";
  std::string head = "keep";            // keep, int8
  std::string shared_experts = "keep";  // keep, fp8, int8

  void add_to(Flags& flags);
  // What stands on the command line without a flag; refuses it beside --model.
  Status take_positional(const std::string& word);
  // Refuses values that no machine could make sense of. Every verb asks it in settle().
  Status check() const;
  // What a person calls the model: a shape, the last part of a folder, minnow.
  std::string name() const;
  // All but the number formats, for verbs that choose those themselves.
  void add_machine_to(Flags& flags);
  // The number of the GPU that --device names; "cuda" is the first.
  std::optional<int> gpu() const;
  // Whether some flag is for a CPU alone.
  bool cpu_only() const;
  // So many int8 numbers an activation is multiplied as, where weights are integers.
  int int8_factors() const { return activations == "8" ? 1 : 2; }
  // --from-huggingface-repo, for verbs that call fetch_model() of pull_model.h.
  void add_download_to(Flags& flags);
};

// Where a model name leads: an existing folder or a repository in the local Hugging Face cache.
Result<std::filesystem::path> locate_model(const std::string& name);

// The same for verbs that take a published shape as well: their refusal names those, too.
Result<std::filesystem::path> locate_model_beside_shapes(const std::string& name);

// The files in a folder that locate_model() found, and of the drafter that the flags name.
Result<ModelSource> open_model(const std::filesystem::path& folder, const ModelFlags& flags);

// The files of the model that the flags name, or random weights where that is a published shape.
Result<ModelSource> open_model_or_shape(const ModelFlags& flags);

// What --kv-cache says; nothing for `auto`.
Result<std::optional<KvRecipe>> kv_choice(const std::string& name);

Result<MemoryRequest> memory_request(const ModelFlags& flags);
WeightChoices weight_choices(const ModelFlags& flags);

}  // namespace slip
