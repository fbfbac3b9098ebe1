// How the cache keeps keys and values: two codecs and the names people give to the pair.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tensor/dtype.h"

namespace slip {

// Plain codecs store a vector as it comes. Coded ones (turboquant.h) rotate it, keep one bf16 scale
// and a few bits per value, and code a whole page at a time.
enum class KvCodec : uint8_t { f32, bf16, fp8, int8, tq4, tq3, tq2 };

constexpr bool is_coded(KvCodec codec) { return codec >= KvCodec::int8; }

// Bits per value, without the scale.
constexpr int bits_of(KvCodec codec) {
  switch (codec) {
    case KvCodec::f32: return 32;
    case KvCodec::bf16: return 16;
    case KvCodec::fp8:
    case KvCodec::int8: return 8;
    case KvCodec::tq4: return 4;
    case KvCodec::tq3: return 3;
    case KvCodec::tq2: return 2;
  }
  unreachable("KvCodec");
}

// Either both plain and equal, or both coded.
struct KvRecipe {
  KvCodec keys = KvCodec::f32;
  KvCodec values = KvCodec::f32;

  bool coded() const { return is_coded(keys); }
  bool operator==(const KvRecipe&) const = default;
};

// The type of the elements of a plain recipe.
DType plain_dtype(const KvRecipe& recipe);

// Bytes of the keys and values of one position of one head, scales included.
uint64_t bytes_per_position(const KvRecipe& recipe, int64_t head_dim);

// "bf16", "int8", "k4v4", ...
std::string name_of(const KvRecipe& recipe);

// Takes our names (f32, bf16, fp8, int8, kAvB with A, B of 8 4 3 2, turboquant = k4v4) and the
// published ones (turboquant35, turboquant_4bit_nc, ...), which mean the nearest of ours.
Result<KvRecipe> parse_kv_recipe(std::string_view name);

// Every name parse_kv_recipe() takes, ours first.
std::vector<std::string> kv_recipe_names();

}  // namespace slip
