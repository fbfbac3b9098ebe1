// What tensors are for, by the names that Hugging Face files use. The one table of such names that
// does not belong to a model: reports and converters go through it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace slip {

// The order is that of reports.
enum class TensorClass {
  embedding,
  head,
  attention,
  delta_net,
  gates,  // in_proj_a and in_proj_b of a delta net: a few rows that steer a whole head
  routed_experts,
  shared_experts,
  router,
  mlp,
  norms,
  mtp,
  vision,
  other,
};

const char* name_of(TensorClass tensor_class);  // "delta net"
std::span<const TensorClass> all_tensor_classes();

// "shared_experts" or "shared-experts", as a person types it; nothing for any other word.
std::optional<TensorClass> parse_tensor_class(std::string_view word);

TensorClass class_of_tensor(std::string_view name);

// The name without what published files put before a text model's own: "model.language_model.",
// "language_model.model.", "model.". Two files of one model may differ in it.
std::string_view without_model_prefix(std::string_view name);

}  // namespace slip
