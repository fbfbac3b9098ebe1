#include "quant/kv_recipe.h"

#include <array>

namespace slip {
namespace {

struct Alias {
  std::string_view name;
  KvRecipe recipe;
};

constexpr KvRecipe k4v4{KvCodec::tq4, KvCodec::tq4};
constexpr KvRecipe k8v4{KvCodec::int8, KvCodec::tq4};

// Published recipes spend a bit per value on a second projection, pad their slots or keep values
// unrotated; these have a smaller error in at most 2 % more bytes than those really take.
constexpr std::array kAliases = {
    Alias{"turboquant", k4v4},
    Alias{"turboquant35", k4v4},
    Alias{"turboquant25", {KvCodec::tq3, KvCodec::tq2}},
    Alias{"turboquant_asym", k4v4},
    Alias{"turboquant_q8k_tq35v", k8v4},
    Alias{"turboquant_q8k_tq25v", {KvCodec::int8, KvCodec::tq3}},
    Alias{"turboquant_k8v4", k8v4},
    Alias{"turboquant_4bit_nc", k4v4},
    Alias{"turboquant_k3v4_nc", {KvCodec::tq3, KvCodec::tq4}},
    Alias{"turboquant_3bit_nc", {KvCodec::tq3, KvCodec::tq3}},
};

constexpr std::array kPlain = {
    Alias{"f32", {KvCodec::f32, KvCodec::f32}},
    Alias{"bf16", {KvCodec::bf16, KvCodec::bf16}},
    Alias{"fp8", {KvCodec::fp8, KvCodec::fp8}},
    Alias{"int8", {KvCodec::int8, KvCodec::int8}},
};

constexpr std::array kCoded = {KvCodec::int8, KvCodec::tq4, KvCodec::tq3, KvCodec::tq2};

std::string coded_name(KvCodec keys, KvCodec values) {
  return cat("k", bits_of(keys), "v", bits_of(values));
}

}  // namespace

DType plain_dtype(const KvRecipe& recipe) {
  switch (recipe.keys) {
    case KvCodec::f32: return DType::f32;
    case KvCodec::bf16: return DType::bf16;
    case KvCodec::fp8: return DType::fp8_e4m3;
    default: unreachable("a coded recipe has no plain type");
  }
}

uint64_t bytes_per_position(const KvRecipe& recipe, int64_t head_dim) {
  const int bits = bits_of(recipe.keys) + bits_of(recipe.values);
  const uint64_t scales = recipe.coded() ? 2 * bytes_per_value(DType::bf16) : 0;
  return uint64_t(head_dim) * uint64_t(bits) / 8 + scales;
}

std::string name_of(const KvRecipe& recipe) {
  for (const Alias& plain : kPlain)
    if (plain.recipe == recipe) return std::string(plain.name);
  return coded_name(recipe.keys, recipe.values);
}

Result<KvRecipe> parse_kv_recipe(std::string_view name) {
  for (const Alias& plain : kPlain)
    if (plain.name == name) return plain.recipe;
  for (const KvCodec keys : kCoded)
    for (const KvCodec values : kCoded)
      if (coded_name(keys, values) == name) return KvRecipe{keys, values};
  for (const Alias& alias : kAliases)
    if (alias.name == name) return alias.recipe;
  return error("no cache recipe is called \"", name, "\"; there are ",
               join(kv_recipe_names(), ", "));
}

std::vector<std::string> kv_recipe_names() {
  std::vector<std::string> names;
  names.reserve(kPlain.size() + kCoded.size() * kCoded.size() + kAliases.size());
  for (const Alias& plain : kPlain) names.emplace_back(plain.name);
  for (const KvCodec keys : kCoded)
    for (const KvCodec values : kCoded) names.push_back(coded_name(keys, values));
  for (const Alias& alias : kAliases) names.emplace_back(alias.name);
  return names;
}

}  // namespace slip
