// Weights in every format that files hold them, and the message for each way a file can be wrong.
#include "weights/checkpoint_source.h"

#include <cmath>
#include <limits>

#include "tensor/buffer.h"
#include "tests/weights/written_checkpoint.h"

namespace slip {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// What describe() and read() give, element by element.
std::vector<float> values_of(WeightSource& source, const std::string& module, int64_t out,
                             int64_t in) {
  const Result<WeightInfo> info = source.describe(module, out, in);
  EXPECT_TRUE(info.ok()) << (info.ok() ? "" : info.failure().message);
  if (!info.ok()) return {};
  const Buffer storage(host_memory(), plain_bytes(info.value()));
  const Weight weight = plain_weight(info.value(), storage.data());
  const Status read = source.read(module, weight);
  EXPECT_TRUE(read.ok()) << (read.ok() ? "" : read.failure().message);
  std::vector<float> values;
  for (int64_t r = 0; r < out; ++r)
    for (int64_t c = 0; c < in; ++c) values.push_back(weight_at(weight, r, c));
  return values;
}

// The failure of describe(), or of read() if describe() succeeds.
Status load_status(WeightSource& source, const std::string& module, int64_t out, int64_t in) {
  SLIP_TRY(const WeightInfo info, source.describe(module, out, in));
  const Buffer storage(host_memory(), plain_bytes(info));
  return source.read(module, plain_weight(info, storage.data()));
}

TEST(PlainWeights, AreReadInEveryFloatType) {
  const std::vector<float> values = small_numbers(6 * 10);
  WrittenCheckpoint written;
  written.add("a.weight", StoredType::bf16, {6, 10}, to_bf16(values))
      .add("b.weight", StoredType::f16, {6, 10}, to_f16(values))
      .add("c.weight", StoredType::f32, {6, 10}, values);
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  EXPECT_EQ(source.describe("a", 6, 10).value().format, WeightFormat::bf16);
  EXPECT_EQ(source.describe("b", 6, 10).value().format, WeightFormat::f16);
  EXPECT_EQ(source.describe("c", 6, 10).value().format, WeightFormat::f32);
  for (const char* module : {"a", "b", "c"}) EXPECT_EQ(values_of(source, module, 6, 10), values);
  EXPECT_TRUE(source.check_all_used().ok());
}

TEST(PlainWeights, NameFileTensorExpectedAndFound) {
  WrittenCheckpoint written;
  written.add("a.weight", StoredType::bf16, {6, 10}, to_bf16(small_numbers(60)))
      .add("i.weight", StoredType::i8, {2, 2}, std::vector<int8_t>(4));
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  expect_error(source.describe("a", 6, 12),
               {"model.safetensors", "a.weight", "[6, 12]", "[6, 10]"});
  expect_error(source.describe("a", 60, 1), {"a.weight", "[60, 1]", "[6, 10]"});
  expect_error(source.describe("i", 2, 2), {"model.safetensors", "i.weight", "BF16", "I8"});
  expect_error(source.describe("b", 6, 10),
               {written.folder().string(), "b.weight", "missing", "b.qweight", "[6, 10]"});
}

// A matrix of more than one run and piece of the search, broken in one place.
template <class Bits>
Status load_broken(StoredType type, int64_t row, int64_t column, Bits bits) {
  constexpr int64_t kIn = 4100;
  std::vector<Bits> stored(size_t(1100 * kIn));
  stored[size_t(row * kIn + column)] = bits;
  WrittenCheckpoint written;
  written.add("m.weight", type, {1100, kIn}, stored);
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  return load_status(source, "m", 1100, kIn);
}

TEST(PlainWeights, AreFiniteNumbers) {
  // The largest finite numbers of each type are, and NaN and infinity of either sign are not.
  EXPECT_TRUE(load_broken<uint16_t>(StoredType::bf16, 3, 5, 0xff7f).ok());
  EXPECT_TRUE(load_broken<uint16_t>(StoredType::f16, 3, 5, 0x7bff).ok());
  EXPECT_TRUE(load_broken<uint32_t>(StoredType::f32, 3, 5, 0xff7fffff).ok());
  expect_error(load_broken<uint16_t>(StoredType::bf16, 3, 5, 0x7f80),
               {"model.safetensors", "tensor m.weight: m is inf at output row 3, input 5"});
  expect_error(load_broken<uint16_t>(StoredType::bf16, 1099, 4099, 0xffc0),
               {"m is -nan at output row 1099, input 4099"});
  expect_error(load_broken<uint16_t>(StoredType::f16, 1099, 4096, 0xfc00),
               {"output row 1099, input 4096"});
  expect_error(load_broken<uint16_t>(StoredType::f16, 0, 0, 0x7c01), {"output row 0, input 0"});
  expect_error(load_broken<uint32_t>(StoredType::f32, 600, 17, 0x7fc00000),
               {"output row 600, input 17"});
  expect_error(load_broken<uint32_t>(StoredType::f32, 1099, 0, 0xff800000),
               {"output row 1099, input 0"});
}

TEST(PlainWeights, AMappedMatrixEndsWhereItsTensorDoes) {
  WrittenCheckpoint written;  // 30 bytes, the last of the file
  written.add("m.weight", StoredType::bf16, {3, 5}, to_bf16(small_numbers(15)));
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  const WeightInfo info = source.describe("m", 3, 5).value();
  const std::span<const std::byte> mapped = source.mapped("m", info);
  const StoredTensor& tensor = *checkpoint.find("m.weight");
  EXPECT_EQ(mapped.data(), tensor.data.data());
  EXPECT_EQ(mapped.size(), tensor.data.size());
}

TEST(Vectors, AreWidenedAndChecked) {
  const std::vector<float> values = small_numbers(12);
  std::vector<float> broken = values;
  broken[5] = kNan;
  WrittenCheckpoint written;
  written.add("bf16", StoredType::bf16, {12}, to_bf16(values))
      .add("f16", StoredType::f16, {4, 1, 3}, to_f16(values))
      .add("f32", StoredType::f32, {12}, values)
      .add("broken", StoredType::bf16, {12}, to_bf16(broken))
      .add("ints", StoredType::i32, {12}, std::vector<int32_t>(12));
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  std::vector<float> read(12);
  for (const char* name : {"bf16", "f32"}) {
    ASSERT_TRUE(source.read_vector(name, {12}, read).ok());
    EXPECT_EQ(read, values);
  }
  ASSERT_TRUE(source.read_vector("f16", {4, 1, 3}, read).ok());
  EXPECT_EQ(read, values);
  expect_error(source.read_vector("f16", {12}, read),
               {"model.safetensors", "f16", "[12]", "[4, 1, 3]"});
  expect_error(source.read_vector("broken", {12}, read),
               {"model.safetensors", "broken", "value 5", "nan"});
  expect_error(source.read_vector("ints", {12}, read), {"ints", "BF16", "I32"});
  expect_error(source.read_vector("none", {12}, read), {"none", "missing", "[12]"});
}

struct Int4Case {
  int64_t group;
  uint32_t zeros;
};

class Int4Weights : public ::testing::TestWithParam<Int4Case> {};

TEST_P(Int4Weights, AreUnpackedExactly) {
  const auto [group, zeros] = GetParam();
  const Int4Module module(24, 256, group, zeros);
  WrittenCheckpoint written;
  module.add_to(written, "m");
  std::vector<int32_t> g_idx(256);
  for (size_t i = 0; i < g_idx.size(); ++i) g_idx[i] = int32_t(int64_t(i) / group);
  written.add("m.g_idx", StoredType::i32, {256}, g_idx);
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  const WeightInfo info = source.describe("m", 24, 256).value();
  EXPECT_EQ(info.format, WeightFormat::int4_group);
  EXPECT_EQ(info.group, group);
  EXPECT_EQ(values_of(source, "m", 24, 256), module.values);
  EXPECT_TRUE(source.check_all_used().ok()) << "g_idx counts as used";
}

INSTANTIATE_TEST_SUITE_P(GroupsAndZeros, Int4Weights,
                         ::testing::Values(Int4Case{32, 0x77777777}, Int4Case{64, 0x77777777},
                                           Int4Case{128, 0x77777777}, Int4Case{32, 0x88888888},
                                           Int4Case{64, 0x88888888}, Int4Case{128, 0x88888888}));

// Changes one thing about a good int4 module and returns what loading then says.
Status load_changed_int4(const std::function<void(Int4Module&)>& change_values,
                         const std::function<void(WrittenCheckpoint&)>& change_files = {}) {
  Int4Module module(16, 256, 128);
  change_values(module);
  WrittenCheckpoint written;
  module.add_to(written, "m");
  if (change_files) change_files(written);
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  return load_status(source, "m", 16, 256);
}

TEST(BrokenInt4, AsymmetricZeros) {
  expect_error(
      load_changed_int4([](Int4Module& module) { module.qzeros[1] = 0x77777677; }),
      {"model.safetensors", "tensor m", "asymmetric", "0x77777677", "0x77777777", "word 1"});
}

TEST(BrokenInt4, ScalesThatAreNotNumbers) {
  expect_error(load_changed_int4([](Int4Module& module) { module.scales[16 + 3] = 0x7e00; }),
               {"model.safetensors", "tensor m", "row 3", "group 1", "nan", "finite"});
  expect_error(load_changed_int4([](Int4Module& module) { module.scales[0] = 0xfc00; }),
               {"row 0", "group 0", "-inf"});
}

TEST(BrokenInt4, MissingParts) {
  const auto good = [](Int4Module&) {};
  expect_error(load_changed_int4(good, [](WrittenCheckpoint& w) { w.remove("m.scales"); }),
               {"model.safetensors", "m.qweight", "m.scales"});
  expect_error(load_changed_int4(good, [](WrittenCheckpoint& w) { w.remove("m.qzeros"); }),
               {"model.safetensors", "m.qweight", "m.qzeros"});
  expect_error(load_changed_int4(good, [](WrittenCheckpoint& w) { w.remove("m.qweight"); }),
               {"m.weight is missing"});
}

TEST(BrokenInt4, ActivationOrder) {
  std::vector<int32_t> g_idx(256);
  for (size_t i = 0; i < 256; ++i) g_idx[i] = int32_t(i / 128);
  std::swap(g_idx[3], g_idx[200]);
  expect_error(load_changed_int4([](Int4Module&) {},
                                 [&](WrittenCheckpoint& written) {
                                   written.add("m.g_idx", StoredType::i32, {256}, g_idx);
                                 }),
               {"model.safetensors", "m.g_idx", "input 3", "group 1", "expected 0", "desc_act"});
}

TEST(BrokenInt4, ShapesAndTypes) {
  const auto replaced = [](const char* name, StoredType type, std::vector<int64_t> shape) {
    return load_changed_int4([](Int4Module&) {},
                             [&](WrittenCheckpoint& written) {
                               int64_t bytes = bytes_per_value(type);
                               for (const int64_t dim : shape) bytes *= dim;
                               written.remove(name).add(name, type, shape,
                                                        std::vector<uint8_t>(size_t(bytes)));
                             });
  };
  expect_error(replaced("m.qweight", StoredType::i32, {16, 32}),
               {"model.safetensors", "m.qweight", "[32, 16]", "[16, 32]"});
  expect_error(replaced("m.qweight", StoredType::u8, {32, 16}), {"m.qweight", "I32", "U8"});
  expect_error(replaced("m.scales", StoredType::f16, {2, 8}), {"m.scales", "[2, 16]", "[2, 8]"});
  expect_error(replaced("m.scales", StoredType::bf16, {2, 16}), {"m.scales", "F16", "BF16"});
  expect_error(replaced("m.scales", StoredType::f16, {16, 16}),
               {"m.scales", "32, 64 or 128", "16"});
  expect_error(replaced("m.scales", StoredType::f16, {3, 16}), {"m.scales", "[3, 16]"});
  expect_error(replaced("m.scales", StoredType::f16, {0, 16}), {"m.scales", "[0, 16]"});
  expect_error(replaced("m.qzeros", StoredType::i32, {2, 16}), {"m.qzeros", "[2, 2]", "[2, 16]"});
  expect_error(replaced("m.qzeros", StoredType::f32, {2, 2}), {"m.qzeros", "I32", "F32"});
  expect_error(replaced("m.g_idx", StoredType::i32, {100}), {"m.g_idx", "[256]", "[100]"});
}

TEST(BrokenInt4, ModelsOfOtherShape) {
  const Int4Module module(16, 256, 128);
  WrittenCheckpoint written;
  module.add_to(written, "m");
  const Checkpoint checkpoint = written.open();
  CheckpointSource source(checkpoint, {});
  expect_error(source.describe("m", 16, 128), {"m.qweight", "[16, 16]", "[32, 16]"});
  expect_error(source.describe("m", 32, 256), {"m.qweight", "[32, 32]", "[32, 16]"});
  expect_error(source.describe("m", 16, 250), {"m.qweight"});
}

}  // namespace
}  // namespace slip
