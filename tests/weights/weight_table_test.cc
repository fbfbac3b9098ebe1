// The table: every entry placed, both directions checked, progress that ends at the total.
#include "weights/weight_table.h"

#include <cmath>

#include "kernels/ref/ref_ops.h"
#include "tests/weights/written_checkpoint.h"
#include "weights/checkpoint_source.h"
#include "weights/synthetic_source.h"

namespace slip {
namespace {

struct Loaded {
  Weight a, b;
  View v;
};

void declare(WeightTable& table, Loaded& into) {
  table.add_linear({.name = "a", .module = "a", .out = 5, .in = 7, .recoding = {}}, &into.a);
  table.add_linear({.name = "b", .module = "b", .out = 16, .in = 128, .recoding = {}}, &into.b);
  table.add_vector("v", {3}, &into.v, [](float value) { return value + 1; });
}

WrittenCheckpoint& write_good(WrittenCheckpoint& written) {
  Int4Module(16, 128, 128).add_to(written, "b");
  return written.add("a.weight", StoredType::f32, {5, 7}, small_numbers(35))
      .add("v", StoredType::f32, {3}, std::vector<float>{0, 1, -1});
}

TEST(WeightTable, PlacesEveryEntryAlignedInOneBuffer) {
  WrittenCheckpoint written;
  const Checkpoint checkpoint = write_good(written).open();
  CheckpointSource source(checkpoint, {});
  const std::unique_ptr<Ops> ops = make_ref_ops();
  ThreadPool pool(2);
  WeightTable table;
  Loaded loaded;
  declare(table, loaded);
  const uint64_t planned = table.plan(source, *ops).value();
  const Result<Buffer> buffer = table.load(source, *ops, pool, {});
  ASSERT_TRUE(buffer.ok()) << buffer.failure().message;
  EXPECT_EQ(buffer.value().size(), planned);
  const std::vector<float> a = small_numbers(35), b = Int4Module(16, 128, 128).values;
  for (int64_t i = 0; i < 35; ++i) EXPECT_EQ(weight_at(loaded.a, i / 7, i % 7), a[size_t(i)]);
  for (int64_t i = 0; i < 16 * 128; ++i)
    EXPECT_EQ(weight_at(loaded.b, i / 128, i % 128), b[size_t(i)]);
  EXPECT_EQ(std::vector<float>(loaded.v.f32(), loaded.v.f32() + 3), (std::vector<float>{1, 2, 0}));
  const std::byte* begin = buffer.value().data();
  for (const std::byte* data : {loaded.a.values.data, loaded.b.values.data, loaded.v.data}) {
    EXPECT_TRUE(data >= begin && data < begin + planned);
    EXPECT_EQ((data - begin) % 64, 0);
  }
  ASSERT_EQ(table.placed().size(), 3u);
  EXPECT_EQ(table.placed()[1].info.format, WeightFormat::int4_group);
}

TEST(WeightTable, ProgressRisesToTheTotal) {
  WrittenCheckpoint written;
  const Checkpoint checkpoint = write_good(written).open();
  CheckpointSource source(checkpoint, {});
  const std::unique_ptr<Ops> ops = make_ref_ops();
  ThreadPool pool(3);
  WeightTable table;
  Loaded loaded;
  declare(table, loaded);
  std::vector<uint64_t> seen;
  uint64_t total = 0;
  const Result<Buffer> buffer = table.load(source, *ops, pool, [&](uint64_t done, uint64_t all) {
    seen.push_back(done);
    total = all;
  });
  ASSERT_TRUE(buffer.ok());
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), total);
  EXPECT_EQ(total, buffer.value().size());
}

// Loads with one thing wrong.
Status load_changed(const std::function<void(WrittenCheckpoint&)>& change) {
  WrittenCheckpoint written;
  write_good(written);
  change(written);
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  const std::unique_ptr<Ops> ops = make_ref_ops();
  ThreadPool pool(2);
  WeightTable table;
  Loaded loaded;
  declare(table, loaded);
  SLIP_TRY([[maybe_unused]] const Buffer buffer, table.load(source, *ops, pool, {}));
  return {};
}

TEST(WeightTable, RefusesBothDirections) {
  EXPECT_TRUE(load_changed([](WrittenCheckpoint&) {}).ok());
  expect_error(load_changed([](WrittenCheckpoint& w) { w.remove("a.weight"); }),
               {"a.weight", "missing"});
  expect_error(load_changed([](WrittenCheckpoint& w) { w.remove("v"); }), {"v", "missing", "[3]"});
  expect_error(load_changed([](WrittenCheckpoint& w) {
                 w.add("surplus", StoredType::f32, {1}, std::vector<float>(1));
               }),
               {"1 tensors", "surplus"});
}

TEST(WeightTable, ReportsWhatOnlyTheBytesShow) {
  expect_error(load_changed([](WrittenCheckpoint& w) {
                 w.remove("b.qzeros")
                     .add("b.qzeros", StoredType::i32, {1, 2},
                          std::vector<uint32_t>{0x12345678, 0x77777777});
               }),
               {"tensor b", "asymmetric", "0x12345678"});
}

TEST(SyntheticWeights, AreFiniteReproducibleAndOfTheGivenFormat) {
  for (const WeightFormat format :
       {WeightFormat::f32, WeightFormat::bf16, WeightFormat::f16, WeightFormat::fp8_block,
        WeightFormat::int8_row, WeightFormat::int4_group}) {
    SyntheticSource source([&](const std::string&) { return format; });
    const WeightInfo info = source.describe("m", 24, 256).value();
    EXPECT_EQ(info.format, format);
    const Buffer first(host_memory(), plain_bytes(info)), second(host_memory(), plain_bytes(info));
    const Weight weight = plain_weight(info, first.data());
    ASSERT_TRUE(source.read("m", weight).ok());
    ASSERT_TRUE(source.read("m", plain_weight(info, second.data())).ok());
    EXPECT_EQ(std::memcmp(first.data(), second.data(), first.size()), 0);
    double squares = 0;
    for (int64_t i = 0; i < 24 * 256; ++i) {
      const double value = weight_at(weight, i / 256, i % 256);
      ASSERT_TRUE(std::isfinite(value));
      squares += value * value;
    }
    // Variance near 1 / in keeps activations near one.
    EXPECT_NEAR(squares / 24, 1.0, 0.75) << name_of(format);
  }
}

TEST(SyntheticWeights, FormatsFollowTheAutoRoundFiles) {
  const std::string layer = "model.language_model.layers.3.";
  for (const char* name : {"self_attn.q_proj", "linear_attn.in_proj_qkv", "linear_attn.out_proj",
                           "mlp.experts.17.gate_proj"})
    EXPECT_EQ(autoround_format(layer + name), WeightFormat::int4_group) << name;
  for (const char* name : {"mlp.shared_expert.gate_proj", "mlp.shared_expert_gate", "mlp.gate",
                           "linear_attn.in_proj_a", "linear_attn.in_proj_b"})
    EXPECT_EQ(autoround_format(layer + name), WeightFormat::bf16) << name;
  for (const char* name : {"lm_head", "model.embed_tokens", "mtp.fc", "mtp.layers.0.mlp.down_proj"})
    EXPECT_EQ(autoround_format(name), WeightFormat::bf16) << name;
}

}  // namespace
}  // namespace slip
