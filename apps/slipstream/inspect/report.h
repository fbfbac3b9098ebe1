// What a checkpoint holds and what running it takes, gathered without loading a weight.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/tensor_class.h"
#include "models/model_source.h"

namespace slip {

struct SizedTensors {
  uint64_t tensors = 0;
  uint64_t bytes = 0;
};

// Memory of one user at a length of context.
struct ContextNeed {
  int64_t context = 0;
  uint64_t kv = 0;
  uint64_t total = 0;
};

struct InspectReport {
  std::string name, folder;  // no folder: a shape
  ModelInfo info;
  int64_t attention_layers = 0, delta_net_layers = 0;
  int64_t window_layers = 0;  // attention to the last positions alone
  int64_t shared_layers = 0;  // attention to keys of another layer
  int64_t experts = 0, experts_per_token = 0;
  bool has_mtp = false;
  uint64_t parameters = 0;         // of the text model with its head, without MTP
  uint64_t active_parameters = 0;  // that one token meets
  uint64_t mtp_parameters = 0;
  // As the files store them; for a shape as they would.
  std::map<TensorClass, std::map<std::string, SizedTensors>> stored;
  uint64_t stored_bytes = 0;
  // As they run here.
  std::string backend;
  uint64_t weight_bytes = 0, activation_bytes = 0, state_bytes = 0;
  uint64_t mtp_bytes = 0;               // more, when drafting
  uint64_t active_bytes_per_token = 0;  // weights that a decode step reads, MTP not included
  KvRecipe kv{};
  std::vector<ContextNeed> needs;
  std::map<WeightFormat, uint64_t> formats;  // matrices of the text model, by format
  std::vector<std::string> notes;
};

struct InspectRequest {
  std::string name;                             // as the person wrote it
  std::optional<std::filesystem::path> folder;  // none: `name` is a shape
  KvRecipe kv{};
};
Result<InspectReport> inspect_model(const InspectRequest& request, const Ops& ops);

// Which kernels a format meets on this backend: "int8 activations", "f32 activations".
std::string path_of(WeightFormat format);

JsonObject report_json(const InspectReport& report);
std::string report_text(const InspectReport& report);

}  // namespace slip
