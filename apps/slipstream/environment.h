// The only reader of environment variables, and the only chooser of a backend.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/threads.h"
#include "engine/session.h"
#include "flags.h"
#include "hub/hub_client.h"
#include "kernels/cpu/simd/isa.h"
#include "kernels/ops.h"

namespace slip {

// What --kv-cache takes.
inline constexpr const char* kKvCacheHelp =
    "How keys and values are kept: f32, bf16, fp8, int8, or TurboQuant: k4v4 and others of 8 4 3 2 "
    "bits, or a published name; auto is bf16, but f32 in eval and for one user on a CPU";

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
  // All but the number formats, for verbs that choose those themselves.
  void add_machine_to(Flags& flags);
  // --from-huggingface-repo, for verbs that call fetch_model() of pull_model.h.
  void add_download_to(Flags& flags);
};

// Where a model name leads: an existing folder or a repository in the local Hugging Face cache.
Result<std::filesystem::path> locate_model(const std::string& name);

// The files in a folder that locate_model() found, and of the drafter that the flags name.
Result<ModelSource> open_model(const std::filesystem::path& folder, const ModelFlags& flags);

// The files of the model that the flags name, or random weights where that is a published shape.
Result<ModelSource> open_model_or_shape(const ModelFlags& flags);

// The Hugging Face cache folders that locate_model() looks through, in this order.
std::vector<std::filesystem::path> hugging_face_caches();

// The hub to download from, the token for it and the proxies on the way.
HubSettings hub_settings();
// Where downloads go: the first of the caches.
Result<std::filesystem::path> hub_folder();
// HF_HUB_OFFLINE: nothing may be downloaded.
bool is_offline();

// What the environment says about the person and the terminal.
struct UserEnvironment {
  bool no_color = false;            // NO_COLOR is set
  std::string terminal;             // TERM; empty or "dumb": it understands no escape sequences
  std::filesystem::path state_dir;  // where slipstream may keep its history; may be empty
  std::string api_key;              // SLIPSTREAM_API_KEY: what clients of serve must present
};
UserEnvironment user_environment();

// A pool and a backend; the order of the members is the order of their lives.
struct Backend {
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Ops> ops;
  Isa isa = Isa::portable;
  std::string description;  // "cpu (AVX2), 2 threads"
};
Result<Backend> make_backend(const ModelFlags& flags);

// What --device auto would find.
struct GpuState {
  bool there = false;       // the machine has one, whatever state its driver is in
  std::string description;  // "cuda:0 (NVIDIA H200)"; empty: it cannot be used
  std::string why_not;
};
GpuState look_at_gpu();

// What --kv-cache says; nothing for `auto`.
Result<std::optional<KvRecipe>> kv_choice(const std::string& name);

Result<MemoryRequest> memory_request(const ModelFlags& flags);
WeightChoices weight_choices(const ModelFlags& flags);

// Draws a bar on stderr when that is a terminal and loading takes longer than a moment.
LoadProgress loading_bar(const std::string& what);

}  // namespace slip
