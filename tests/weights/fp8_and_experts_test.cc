// FP8 blocks, fused and single experts, and tensors that nobody asked for.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "tensor/buffer.h"
#include "tests/weights/written_checkpoint.h"
#include "weights/checkpoint_source.h"

namespace slip {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Result<std::vector<float>> try_values(CheckpointSource& source, const std::string& module,
                                      int64_t out, int64_t in) {
  SLIP_TRY(const WeightInfo info, source.describe(module, out, in));
  const Buffer storage(host_memory(), plain_bytes(info));
  const Weight weight = plain_weight(info, storage.data());
  SLIP_TRY_STATUS(source.read(module, weight));
  std::vector<float> values;
  for (int64_t r = 0; r < out; ++r)
    for (int64_t c = 0; c < in; ++c) values.push_back(weight_at(weight, r, c));
  return values;
}

// 200 x 300: the last block of each direction is partial.
struct Fp8Module {
  int64_t out = 200, in = 300;
  std::vector<uint8_t> codes = std::vector<uint8_t>(size_t(200 * 300));
  std::vector<float> scales = {0.5f, 1.5f, -2, 0.25f, 3, 0.125f};  // [2, 3]

  Fp8Module() {
    std::mt19937 rng(11);
    for (uint8_t& code : codes) do
        code = uint8_t(rng());
      while (fp8_is_nan(code));
  }
  float value(int64_t row, int64_t column) const {
    return fp8_to_float(codes[size_t(row * in + column)]) *
           scales[size_t(row / 128 * 3 + column / 128)];
  }
  template <class T>
  void add_to(WrittenCheckpoint& written, StoredType scale_type,
              const std::vector<T>& stored) const {
    written.add("m.weight", StoredType::f8_e4m3, {out, in}, codes)
        .add("m.weight_scale_inv", scale_type, {2, 3}, stored);
  }
};

void expect_fp8_values(WrittenCheckpoint& written, const Fp8Module& module) {
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  EXPECT_EQ(source.describe("m", module.out, module.in).value().format, WeightFormat::fp8_block);
  const std::vector<float> found = try_values(source, "m", module.out, module.in).value();
  for (int64_t r = 0; r < module.out; ++r)
    for (int64_t c = 0; c < module.in; ++c)
      ASSERT_EQ(found[size_t(r * module.in + c)], module.value(r, c)) << r << ", " << c;
  EXPECT_TRUE(source.check_all_used().ok());
}

TEST(Fp8Weights, AreReadWithScalesOfEveryType) {
  const Fp8Module module;
  {
    WrittenCheckpoint written;
    module.add_to(written, StoredType::f32, module.scales);
    expect_fp8_values(written, module);
  }
  {
    WrittenCheckpoint written;
    module.add_to(written, StoredType::bf16, to_bf16(module.scales));
    expect_fp8_values(written, module);
  }
  {
    WrittenCheckpoint written;
    module.add_to(written, StoredType::f16, to_f16(module.scales));
    expect_fp8_values(written, module);
  }
}

TEST(BrokenFp8, ScalesMissingMisshapenMistypedOrNan) {
  Fp8Module module;
  {
    WrittenCheckpoint written;
    module.add_to(written, StoredType::f32, module.scales);
    const Checkpoint checkpoint = written.remove("m.weight_scale_inv").open();
    CheckpointSource source(checkpoint, {});
    expect_error(source.describe("m", 200, 300),
                 {"model.safetensors", "m.weight", "F8_E4M3", "m.weight_scale_inv"});
  }
  {
    WrittenCheckpoint written;
    written.add("m.weight", StoredType::f8_e4m3, {200, 300}, module.codes)
        .add("m.weight_scale_inv", StoredType::f32, {1, 6}, module.scales);
    const Checkpoint checkpoint = written.open();
    CheckpointSource source(checkpoint, {});
    expect_error(source.describe("m", 200, 300),
                 {"model.safetensors", "m.weight_scale_inv", "[2, 3]", "[1, 6]"});
  }
  {
    WrittenCheckpoint written;
    module.add_to(written, StoredType::f8_e8m0, std::vector<uint8_t>(6));
    const Checkpoint checkpoint = written.open();
    CheckpointSource source(checkpoint, {});
    expect_error(source.describe("m", 200, 300), {"m.weight_scale_inv", "BF16", "F8_E8M0"});
  }
  {
    module.scales[4] = std::numeric_limits<float>::quiet_NaN();
    WrittenCheckpoint written;
    module.add_to(written, StoredType::f32, module.scales);
    const Checkpoint checkpoint = written.open();
    CheckpointSource source(checkpoint, {});
    expect_error(try_values(source, "m", 200, 300),
                 {"model.safetensors", "m.weight_scale_inv", "row 1", "column 1", "nan"});
  }
}

TEST(BrokenFp8, NanCodes) {
  Fp8Module module;
  module.codes[size_t(7 * 300 + 9)] = 0x7f;
  WrittenCheckpoint written;
  module.add_to(written, StoredType::f32, module.scales);
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  expect_error(try_values(source, "m", 200, 300),
               {"model.safetensors", "m.weight", "NaN", "row 7", "input 9"});
}

// Two experts, width 6, hidden 10.
constexpr int64_t kWidth = 6, kHidden = 10;

std::vector<float> part(const std::vector<float>& values, int64_t begin, int64_t count) {
  return {values.begin() + begin, values.begin() + begin + count};
}

TEST(Experts, OneTensorEachAndFusedGiveTheSameMatrices) {
  const std::vector<float> gate_up = small_numbers(2 * 2 * kWidth * kHidden, 4);
  const std::vector<float> down = small_numbers(2 * kHidden * kWidth, 5);
  WrittenCheckpoint fused, single;
  fused.add("x.experts.gate_up_proj", StoredType::bf16, {2, 2 * kWidth, kHidden}, to_bf16(gate_up))
      .add("x.experts.down_proj", StoredType::bf16, {2, kHidden, kWidth}, to_bf16(down));
  const int64_t size = kWidth * kHidden;
  for (int64_t e = 0; e < 2; ++e) {
    const std::string name = cat("x.experts.", e, ".");
    single
        .add(name + "gate_proj.weight", StoredType::bf16, {kWidth, kHidden},
             to_bf16(part(gate_up, 2 * e * size, size)))
        .add(name + "up_proj.weight", StoredType::bf16, {kWidth, kHidden},
             to_bf16(part(gate_up, (2 * e + 1) * size, size)))
        .add(name + "down_proj.weight", StoredType::bf16, {kHidden, kWidth},
             to_bf16(part(down, e * size, size)));
  }
  const Checkpoint fused_files = fused.open(), single_files = single.open();
  CheckpointSource from_fused(fused_files, {}), from_single(single_files, {});
  for (int64_t e = 0; e < 2; ++e) {
    for (const std::string projection : {"gate_proj", "up_proj", "down_proj"}) {
      const std::string module = cat("x.experts.", e, ".", projection);
      const bool is_down = projection == "down_proj";
      const int64_t out = is_down ? kHidden : kWidth, in = is_down ? kWidth : kHidden;
      EXPECT_EQ(try_values(from_fused, module, out, in).value(),
                try_values(from_single, module, out, in).value())
          << module;
    }
  }
  EXPECT_TRUE(from_fused.check_all_used().ok());
  EXPECT_TRUE(from_single.check_all_used().ok());
}

TEST(Experts, AFusedTensorHasNoneThatNobodyUses) {
  WrittenCheckpoint written;
  written.add("x.experts.down_proj", StoredType::bf16, {3, kHidden, kWidth},
              to_bf16(small_numbers(3 * kHidden * kWidth)));
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  for (const int64_t expert : {1, 0})
    ASSERT_TRUE(source.describe(cat("x.experts.", expert, ".down_proj"), kHidden, kWidth).ok());
  expect_error(source.check_all_used(),
               {"model.safetensors", "x.experts.down_proj has 3 experts, this model uses 2"});
  ASSERT_TRUE(source.describe("x.experts.2.down_proj", kHidden, kWidth).ok());
  EXPECT_TRUE(source.check_all_used().ok());
}

TEST(Experts, FusedTensorsOfTheWrongShapeOrType) {
  WrittenCheckpoint written;
  written
      .add("x.experts.gate_up_proj", StoredType::bf16, {2, kWidth, kHidden},
           to_bf16(small_numbers(2 * kWidth * kHidden)))
      .add("x.experts.down_proj", StoredType::i8, {2, kHidden, kWidth},
           std::vector<int8_t>(size_t(2 * kHidden * kWidth)));
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  expect_error(source.describe("x.experts.0.gate_proj", kWidth, kHidden),
               {"model.safetensors", "x.experts.gate_up_proj", "[2, 12, 10]", "[2, 6, 10]"});
  expect_error(source.describe("x.experts.0.down_proj", kHidden, kWidth),
               {"x.experts.down_proj", "BF16", "I8"});
  expect_error(source.describe("x.experts.2.down_proj", kHidden, kWidth),
               {"x.experts.down_proj", "[3, 10, 6]", "[2, 10, 6]"});
  expect_error(source.describe("y.experts.0.up_proj", kWidth, kHidden),
               {"y.experts.0.up_proj.weight", "missing", "y.experts.gate_up_proj"});
  expect_error(source.describe("x.experts.one.up_proj", kWidth, kHidden), {"missing"});
}

TEST(ExtraTensors, AreNamedUnlessTheirPrefixIsIgnored) {
  WrittenCheckpoint written;
  for (const char* name : {"a.weight", "b.weight", "b.bias", "c1", "c2", "c3", "c4", "c5",
                           "visual.patch.weight", "mtp.fc.weight"})
    written.add(name, StoredType::f32, {1, 1}, std::vector<float>(1));
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {"visual.", "mtp."});
  ASSERT_TRUE(source.describe("a", 1, 1).ok());
  const Status extra = source.check_all_used();
  expect_error(extra,
               {checkpoint.folder().string(), "7 tensors", "b.bias", "b.weight", "c1", "..."});
  EXPECT_THAT(extra.failure().message, Not(HasSubstr("visual")));
  EXPECT_THAT(extra.failure().message, Not(HasSubstr("mtp")));
}

TEST(ExtraTensors, ASecondFormOfAMatrixIsExtra) {
  const Int4Module module(16, 128, 128);
  WrittenCheckpoint written;
  module.add_to(written, "m");
  written.add("m.weight", StoredType::bf16, {16, 128}, to_bf16(small_numbers(16 * 128)));
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  ASSERT_TRUE(source.describe("m", 16, 128).ok());
  expect_error(source.check_all_used(), {"m.weight"});
}

}  // namespace
}  // namespace slip
