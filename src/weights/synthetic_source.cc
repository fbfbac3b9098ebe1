#include "weights/synthetic_source.h"

#include <cmath>
#include <cstring>

#include "base/split_mix.h"
#include "quant/int4_group.h"
#include "quant/number_formats.h"

namespace slip {
namespace {

// Small, fast and good enough for noise: one multiplication per eight bytes.
class Noise {
 public:
  explicit Noise(const std::string& name) : Noise(name, 0) {}
  // A stream for each row, so that rows may be asked for one by one.
  Noise(const std::string& name, int64_t row)
      : state_(split_mix(std::hash<std::string>{}(name) + uint64_t(row)) | 1) {}

  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  // Uniform in [-1, 1).
  float signed_unit() { return float(int64_t(next()) >> 40) * 0x1p-23f; }

 private:
  uint64_t state_;
};

// Keeps the variance of activations near one through a layer.
float weight_scale(int64_t in) { return 1.7f / std::sqrt(float(in)); }

}  // namespace

Result<WeightInfo> SyntheticSource::describe(const std::string& module, int64_t out, int64_t in) {
  const WeightFormat format = rule_(module);
  int group = 0;
  if (format == WeightFormat::int4_group) group = int4_group_for(in);
  if (format == WeightFormat::fp8_block) group = kFp8Block;
  return WeightInfo{format, out, in, group};
}

Status SyntheticSource::read_rows(const MatrixRows& rows, const Weight& plain) {
  const float scale = weight_scale(plain.info.in);
  const auto fill = [&](auto* values, auto encode) {
    for (int64_t row = 0; row < plain.info.out; ++row) {
      Noise noise(rows.module, rows.first + row);
      for (int64_t i = 0; i < plain.info.in; ++i) *values++ = encode(noise.signed_unit() * scale);
    }
    return Status{};
  };
  switch (plain.info.format) {
    case WeightFormat::f32: return fill(plain.values.f32(), [](float value) { return value; });
    case WeightFormat::bf16: return fill(plain.values.as<uint16_t>(DType::bf16), float_to_bf16);
    case WeightFormat::f16: return fill(plain.values.as<uint16_t>(DType::f16), float_to_f16);
    case WeightFormat::fp8_block:
    case WeightFormat::int8_row:
    case WeightFormat::int4_group: break;
  }
  unreachable("a 16- or 32-bit WeightFormat");
}

Status SyntheticSource::read(const std::string& module, const Weight& plain) {
  Noise noise(module);
  const WeightInfo& info = plain.info;
  const float scale = weight_scale(info.in);
  const size_t bytes = plain.values.bytes();
  const auto fill_words = [&] {
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
      const uint64_t word = noise.next();
      std::memcpy(plain.values.data + i, &word, 8);
    }
  };
  switch (info.format) {
    case WeightFormat::f32:
    case WeightFormat::bf16:
    case WeightFormat::f16: return read_rows({module, info, 0}, plain);
    case WeightFormat::fp8_block: {
      fill_words();
      auto* codes = reinterpret_cast<uint8_t*>(plain.values.data);
      for (size_t i = 0; i < bytes; ++i)
        if (fp8_is_nan(codes[i])) codes[i] ^= 1;
      for (int64_t i = 0; i < plain.scales.count(); ++i) plain.scales.f32()[i] = scale / 172;
      return {};
    }
    case WeightFormat::int8_row:
      fill_words();
      for (int64_t i = 0; i < plain.scales.count(); ++i) plain.scales.f32()[i] = scale / 127;
      return {};
    case WeightFormat::int4_group: {
      fill_words();
      auto* scales = plain.scales.as<uint16_t>(DType::f16);
      for (int64_t i = 0; i < plain.scales.count(); ++i)
        scales[i] = float_to_f16((noise.next() & 1 ? scale : -scale) / 8);
      return {};
    }
  }
  unreachable("WeightFormat");
}

Status SyntheticSource::read_vector(const std::string& name, const Shape&,
                                    std::span<float> values) {
  Noise noise(name);
  for (float& value : values) value = 0.1f * noise.signed_unit();
  return {};
}

WeightFormat format_of(Release release) {
  switch (release) {
    case Release::int4: return WeightFormat::int4_group;
    case Release::fp8: return WeightFormat::fp8_block;
    case Release::bf16: return WeightFormat::bf16;
  }
  unreachable("Release");
}

WeightFormat autoround_format(const std::string& module) {
  const auto has = [&](const char* part) { return module.find(part) != std::string::npos; };
  if (has("mtp.") || has("shared_expert") || has("in_proj_a") || has("in_proj_b") ||
      has("lm_head") || has("embed_tokens") || module.ends_with("mlp.gate"))
    return WeightFormat::bf16;
  return WeightFormat::int4_group;
}

SyntheticSource::FormatRule qwen_formats(Release release) {
  if (release == Release::int4) return autoround_format;
  return [release](const std::string& module) {
    const bool small = module.ends_with("shared_expert_gate") || module.ends_with("mtp.fc");
    const bool drafts = module.find("mtp.") != std::string::npos && !module.ends_with("mlp.gate");
    const bool shared = module.find("shared_expert.") != std::string::npos;
    const bool large = drafts || shared || autoround_format(module) == WeightFormat::int4_group;
    return large && !small ? format_of(release) : WeightFormat::bf16;
  };
}

}  // namespace slip
