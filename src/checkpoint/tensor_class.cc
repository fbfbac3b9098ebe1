#include "checkpoint/tensor_class.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace slip {
namespace {

constexpr std::array kAll = {
    TensorClass::embedding,      TensorClass::head,   TensorClass::attention,
    TensorClass::delta_net,      TensorClass::gates,  TensorClass::routed_experts,
    TensorClass::shared_experts, TensorClass::router, TensorClass::mlp,
    TensorClass::norms,          TensorClass::mtp,    TensorClass::vision,
    TensorClass::other};

struct NamePart {
  std::string_view part;
  TensorClass tensor_class;
};

// The first that matches decides. Parts with dots at both ends are components of the name, also
// its first or last one.
constexpr std::array kParts = {
    NamePart{".mtp.", TensorClass::mtp},
    NamePart{".visual.", TensorClass::vision},
    NamePart{".vision_tower.", TensorClass::vision},
    NamePart{".audio_tower.", TensorClass::vision},
    NamePart{".embed_vision.", TensorClass::vision},
    NamePart{".embed_audio.", TensorClass::vision},
    NamePart{"embed_tokens", TensorClass::embedding},
    NamePart{"lm_head", TensorClass::head},
    NamePart{"shared_expert", TensorClass::shared_experts},
    NamePart{".experts.", TensorClass::routed_experts},
    NamePart{".mlp.gate.", TensorClass::router},
    NamePart{".router.", TensorClass::router},
    NamePart{"norm.", TensorClass::norms},
    NamePart{".mlp.", TensorClass::mlp},
    NamePart{".in_proj_a.", TensorClass::gates},
    NamePart{".in_proj_b.", TensorClass::gates},
    NamePart{".self_attn.", TensorClass::attention},
    NamePart{".linear_attn.", TensorClass::delta_net},
};

}  // namespace

const char* name_of(TensorClass tensor_class) {
  switch (tensor_class) {
    case TensorClass::embedding: return "embedding";
    case TensorClass::head: return "head";
    case TensorClass::attention: return "attention";
    case TensorClass::delta_net: return "delta net";
    case TensorClass::gates: return "gates";
    case TensorClass::routed_experts: return "routed experts";
    case TensorClass::shared_experts: return "shared experts";
    case TensorClass::router: return "router";
    case TensorClass::mlp: return "mlp";
    case TensorClass::norms: return "norms";
    case TensorClass::mtp: return "mtp";
    case TensorClass::vision: return "vision (not used)";
    case TensorClass::other: return "other";
  }
  unreachable("TensorClass");
}

std::span<const TensorClass> all_tensor_classes() { return kAll; }

std::optional<TensorClass> parse_tensor_class(std::string_view word) {
  std::string typed(word);
  std::replace_if(
      typed.begin(), typed.end(), [](char c) { return c == '_' || c == '-'; }, ' ');
  if (typed == "vision") return TensorClass::vision;
  for (const TensorClass candidate : kAll)
    if (typed == name_of(candidate)) return candidate;
  return std::nullopt;
}

TensorClass class_of_tensor(std::string_view name) {
  const std::string dotted = std::string(".").append(name).append(".");
  for (const auto& [part, tensor_class] : kParts)
    if (dotted.find(part) != std::string::npos) return tensor_class;
  return TensorClass::other;
}

std::string_view without_model_prefix(std::string_view name) {
  for (const std::string_view prefix :
       {"model.language_model.", "language_model.model.", "model.", "language_model."})
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  return name;
}

}  // namespace slip
