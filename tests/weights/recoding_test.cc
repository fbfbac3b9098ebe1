// Formats and rows made at load.
#include "weights/recoding.h"

#include <cmath>

#include "kernels/ref/ref_ops.h"
#include "quant/fp8_block.h"
#include "quant/int8_row.h"
#include "tests/weights/written_checkpoint.h"
#include "weights/checkpoint_source.h"
#include "weights/synthetic_source.h"
#include "weights/weight_table.h"

namespace slip {
namespace {

struct Plain {
  WeightInfo info;
  Buffer buffer;
  Weight weight;

  explicit Plain(const WeightInfo& made)
      : info(made),
        buffer(host_memory(), plain_bytes(made)),
        weight(plain_weight(made, buffer.data())) {}

  std::vector<float> row(int64_t row) const {
    std::vector<float> values;
    for (int64_t i = 0; i < info.in; ++i) values.push_back(weight_at(weight, row, i));
    return values;
  }
  std::vector<std::byte> bytes() const { return {buffer.data(), buffer.data() + buffer.size()}; }
};

// Shape of the module that the tests read: more rows than are read at once, and not a multiple.
constexpr int64_t kOut = 300, kIn = 160;

Result<Plain> recode(WeightSource& source, const Recoding& recoding, ThreadPool* pool = nullptr) {
  SLIP_TRY(const WeightInfo found, source.describe("m", kOut, kIn));
  Plain plain(recoded_info(found, recoding));
  SLIP_TRY_STATUS(read_recoded(source, {"m", found, recoding}, plain.weight, pool));
  return plain;
}

Plain read_plain(WeightSource& source) { return recode(source, {}).value(); }

SyntheticSource source_of(WeightFormat format) {
  return SyntheticSource([=](const std::string&) { return format; });
}

constexpr WeightFormat kFloats[] = {WeightFormat::f32, WeightFormat::bf16, WeightFormat::f16};

TEST(Recoding, Int8IsWhatQuantizingTheWholeGives) {
  for (const WeightFormat format : kFloats) {
    SyntheticSource source = source_of(format);
    const Plain found = recode(source, {.format = WeightFormat::int8_row}).value();
    const Plain original = read_plain(source), expected({WeightFormat::int8_row, kOut, kIn, 0});
    ASSERT_TRUE(quantize_int8_rows(original.weight, expected.weight, 0).ok());
    EXPECT_EQ(found.info.format, WeightFormat::int8_row);
    EXPECT_EQ(found.bytes(), expected.bytes()) << name_of(format);
  }
}

TEST(Recoding, Fp8IsWhatQuantizingTheWholeGives) {
  for (const WeightFormat format : kFloats) {
    SyntheticSource source = source_of(format);
    const Plain found = recode(source, {.format = WeightFormat::fp8_block}).value();
    const Plain original = read_plain(source),
                expected({WeightFormat::fp8_block, kOut, kIn, kFp8Block});
    ASSERT_TRUE(quantize_fp8_blocks(original.weight, expected.weight, 0).ok());
    EXPECT_EQ(found.info.group, kFp8Block);
    EXPECT_EQ(found.bytes(), expected.bytes()) << name_of(format);
  }
}

TEST(Recoding, WhatIsQuantizedStaysAsItIs) {
  for (const WeightFormat format :
       {WeightFormat::int4_group, WeightFormat::int8_row, WeightFormat::fp8_block})
    for (const WeightFormat wanted : {WeightFormat::int8_row, WeightFormat::fp8_block}) {
      SyntheticSource source = source_of(format);
      const Plain found = recode(source, {.format = wanted}).value();
      EXPECT_EQ(found.info.format, format);
      EXPECT_EQ(found.info.group, read_plain(source).info.group);
      EXPECT_EQ(found.bytes(), read_plain(source).bytes());
    }
}

// Runs longer than are read at once, single rows, backwards, twice, the first and the last.
std::vector<int32_t> some_rows() {
  std::vector<int32_t> rows;
  for (int32_t row = 20; row < 280; ++row) rows.push_back(row);
  rows.insert(rows.end(), {299, 0, 17, 16, 17, 130, 131});
  return rows;
}

TEST(Recoding, RowsAreThoseOfTheWhole) {
  const std::vector<int32_t> rows = some_rows();
  for (const WeightFormat format : {WeightFormat::f32, WeightFormat::bf16, WeightFormat::f16,
                                    WeightFormat::int8_row, WeightFormat::int4_group}) {
    SyntheticSource source = source_of(format);
    const Plain whole = read_plain(source), found = recode(source, {.rows = rows}).value();
    EXPECT_EQ(found.info.format, format);
    ASSERT_EQ(found.info.out, int64_t(rows.size()));
    for (size_t i = 0; i < rows.size(); ++i)
      ASSERT_EQ(found.row(int64_t(i)), whole.row(rows[i])) << name_of(format) << ", row " << i;
  }
}

TEST(Recoding, QuantizedRowsAreThoseOfTheQuantizedWhole) {
  const std::vector<int32_t> rows = some_rows();
  SyntheticSource source = source_of(WeightFormat::bf16);
  const Recoding int8{.format = WeightFormat::int8_row};
  const Plain whole = recode(source, int8).value();
  const Plain found = recode(source, {.format = int8.format, .rows = rows}).value();
  for (size_t i = 0; i < rows.size(); ++i)
    ASSERT_EQ(found.row(int64_t(i)), whole.row(rows[i])) << "row " << i;
}

// Values of a block that rows no longer share.
TEST(Recoding, RowsOfFp8BecomeInt8) {
  const std::vector<int32_t> rows = some_rows();
  SyntheticSource source = source_of(WeightFormat::fp8_block);
  const Plain whole = read_plain(source), found = recode(source, {.rows = rows}).value();
  EXPECT_EQ(found.info.format, WeightFormat::int8_row);
  EXPECT_EQ(found.info.group, 0);
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<float> expected = whole.row(rows[i]), values = found.row(int64_t(i));
    const float half_step = found.weight.scales.f32()[i] * 0.5001f;
    for (size_t c = 0; c < values.size(); ++c)
      ASSERT_LE(std::abs(values[c] - expected[c]), half_step) << "row " << i;
  }
  const WeightInfo asked = recoded_info({WeightFormat::bf16, kOut, kIn, 0},
                                        {.format = WeightFormat::fp8_block, .rows = rows});
  EXPECT_EQ(asked.format, WeightFormat::int8_row);
}

TEST(Recoding, ReadsFusedExpertsAndSaysWhichWeightIsNotANumber) {
  std::vector<float> values = small_numbers(2 * 2 * kOut * kIn);
  WrittenCheckpoint written;
  written.add("x.experts.gate_up_proj", StoredType::bf16, {2, 2 * kOut, kIn}, to_bf16(values));
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  const Recoding int8{.format = WeightFormat::int8_row};
  const std::string module = "x.experts.1.up_proj";
  const WeightInfo found = source.describe(module, kOut, kIn).value();
  const Plain plain(recoded_info(found, int8));
  ASSERT_TRUE(read_recoded(source, {module, found, int8}, plain.weight).ok());
  for (int64_t row = 0; row < kOut; ++row) {
    const float* expected = values.data() + (3 * kOut + row) * kIn;
    std::vector<int8_t> codes(kIn);
    const float scale = quantize_int8_row({expected, size_t(kIn)}, codes).value();
    ASSERT_EQ(plain.weight.scales.f32()[row], scale) << row;
    ASSERT_EQ(std::memcmp(plain.weight.values.data + row * kIn, codes.data(), kIn), 0) << row;
  }

  values[size_t((3 * kOut + 299) * kIn)] = INFINITY;
  WrittenCheckpoint bad;
  bad.add("x.experts.gate_up_proj", StoredType::bf16, {2, 2 * kOut, kIn}, to_bf16(values));
  const Checkpoint bad_checkpoint = bad.open();
  CheckpointSource bad_source(bad_checkpoint, {});
  expect_error(read_recoded(bad_source, {module, found, int8}, plain.weight),
               {module, "row 299", "inf"});
}

TEST(Recoding, ThreadsThatShareAMatrixMakeTheSame) {
  ThreadPool pool(3);
  const std::vector<int32_t> rows = {299, 5, 6, 7, 0, 150};
  for (const WeightFormat format : kFloats) {
    SyntheticSource source = source_of(format);
    for (const Recoding& recoding :
         {Recoding{.format = WeightFormat::int8_row}, Recoding{.format = WeightFormat::fp8_block},
          Recoding{.format = WeightFormat::int4_group}, Recoding{.rows = rows},
          Recoding{.format = WeightFormat::int8_row, .rows = rows}}) {
      const Plain alone = recode(source, recoding).value();
      EXPECT_EQ(recode(source, recoding, &pool).value().bytes(), alone.bytes()) << name_of(format);
    }
  }
  std::vector<float> values = small_numbers(kOut * kIn);
  values[size_t(299 * kIn)] = INFINITY;
  WrittenCheckpoint bad;
  bad.add("m.weight", StoredType::bf16, {kOut, kIn}, to_bf16(values));
  const Checkpoint checkpoint = bad.open();
  CheckpointSource source(checkpoint, {});
  expect_error(recode(source, {.format = WeightFormat::int8_row}, &pool), {"row 299", "inf"});
}

TEST(WeightTable, MakesFormatsAndRowsAndPlansThem) {
  WrittenCheckpoint written;
  const std::vector<float> values = small_numbers(kOut * kIn);
  const Checkpoint checkpoint =
      written.add("m.weight", StoredType::bf16, {kOut, kIn}, to_bf16(values)).open();
  const std::vector<int32_t> rows = {5, 299, 7};
  CheckpointSource source(checkpoint, {});
  const std::unique_ptr<Ops> ops = make_ref_ops();
  ThreadPool pool(3);
  WeightTable table;
  Weight plain, fp8, int8, some;
  const auto made = [&](const char* name, const Recoding& recoding) {
    return MadeLinear{.name = name, .module = "m", .out = kOut, .in = kIn, .recoding = recoding};
  };
  table.add_linear(made("m", {}), &plain);
  table.add_linear(made("fp8", {.format = WeightFormat::fp8_block}), &fp8);
  table.add_linear(made("int8", {.format = WeightFormat::int8_row}), &int8);
  table.add_linear(made("some", {.format = WeightFormat::int8_row, .rows = rows}), &some);
  const uint64_t planned = table.plan(source, *ops).value();
  const Result<Buffer> loaded = table.load(source, *ops, pool, {});
  ASSERT_TRUE(loaded.ok()) << loaded.failure().message;
  EXPECT_EQ(loaded.value().size(), planned);
  EXPECT_EQ(plain.info.format, WeightFormat::bf16);
  EXPECT_EQ(fp8.info.format, WeightFormat::fp8_block);
  EXPECT_EQ(some.info.out, 3);
  for (int64_t i = 0; i < kOut * kIn; ++i) {
    const float exact = values[size_t(i)];
    ASSERT_EQ(weight_at(plain, i / kIn, i % kIn), exact);
    ASSERT_NEAR(weight_at(fp8, i / kIn, i % kIn), exact, std::abs(exact) / 16 + 1e-3);
    ASSERT_NEAR(weight_at(int8, i / kIn, i % kIn), exact, 0.51 * 2 / 127);
  }
  for (int64_t i = 0; i < 3 * kIn; ++i)
    ASSERT_EQ(weight_at(some, i / kIn, i % kIn), weight_at(int8, rows[size_t(i / kIn)], i % kIn));
  std::vector<std::string> names;
  for (const PlacedWeight& weight : table.placed()) names.push_back(weight.name);
  EXPECT_EQ(names, (std::vector<std::string>{"m", "fp8", "int8", "some"}));
}

TEST(WeightTable, ListsWhatASourceLacks) {
  WrittenCheckpoint written;
  Int4Module(16, 128, 128).add_to(written, "half");
  written.remove("half.qzeros")
      .add("fp8.weight", StoredType::f8_e4m3, {2, 2}, std::vector<uint8_t>(4))
      .add("there.weight", StoredType::f32, {2, 2}, std::vector<float>(4))
      .add("x.experts.down_proj", StoredType::f32, {1, 2, 2}, std::vector<float>(4))
      .add("v", StoredType::f32, {1}, std::vector<float>(1));
  const Checkpoint checkpoint = written.open();
  const CheckpointSource source(checkpoint, {});
  WeightTable table;
  Weight weight;
  View view;
  for (const char* module :
       {"there", "half", "fp8", "x.experts.0.down_proj", "x.experts.0.up_proj", "gone"})
    table.add_linear({.name = module, .module = module, .out = 2, .in = 2, .recoding = {}},
                     &weight);
  table.add_vector("v", {1}, &view);
  table.add_vector("w", {1}, &view);
  EXPECT_EQ(table.missing(source),
            (std::vector<std::string>{"half.qzeros", "fp8.weight_scale_inv",
                                      "x.experts.0.up_proj.weight", "gone.weight", "w"}));
}

}  // namespace
}  // namespace slip
