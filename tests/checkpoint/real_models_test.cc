// The checkpoints that come with the project. A test that finds no files says so and is skipped.
#include <algorithm>

#include "checkpoint/checkpoint.h"
#include "checkpoint/json_files.h"
#include "tests/checkpoint/test_files.h"

namespace slip {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const fs::path kShared = SLIP_SHARED_DIR;

int64_t count_mtp(const Checkpoint& checkpoint) {
  return std::count_if(checkpoint.tensors().begin(), checkpoint.tensors().end(),
                       [](const StoredTensor& tensor) { return tensor.name.starts_with("mtp."); });
}

void expect_int4_minnow(const fs::path& folder) {
  auto opened = Checkpoint::open(folder);
  ASSERT_TRUE(opened.ok()) << opened.failure().message;
  const Checkpoint& checkpoint = opened.value();
  EXPECT_EQ(checkpoint.tensors().size(), 168u + 1161u + 65u);
  EXPECT_EQ(count_mtp(checkpoint), 65);
  EXPECT_THAT(
      checkpoint.notes(),
      ElementsAre("65 tensors (mtp.*) are in model_extra_tensors.safetensors but not in the "
                  "index; used all the same"));
  const StoredTensor* qweight =
      checkpoint.find("model.language_model.layers.0.linear_attn.in_proj_qkv.qweight");
  ASSERT_NE(qweight, nullptr);
  EXPECT_EQ(qweight->type, StoredType::i32);
  // Symmetric int4 in the GPTQ layout: every zero point is stored as seven.
  const StoredTensor* qzeros =
      checkpoint.find("model.language_model.layers.0.linear_attn.in_proj_qkv.qzeros");
  ASSERT_NE(qzeros, nullptr);
  EXPECT_TRUE(std::all_of(qzeros->data.begin(), qzeros->data.end(),
                          [](std::byte byte) { return byte == std::byte{0x77}; }));
  EXPECT_TRUE(read_config_json(folder).ok());
}

TEST(RealModels, MinnowOfTheRepositoryHasAllMtpTensors) {
  const fs::path folder = SLIP_SOURCE_DIR "/models/minnow";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is absent";
  expect_int4_minnow(folder);
}

TEST(RealModels, MinnowInt4) {
  const fs::path folder = kShared / "minnow/int4";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is absent";
  expect_int4_minnow(folder);
}

TEST(RealModels, MinnowBf16) {
  const fs::path folder = kShared / "minnow/bf16";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is absent";
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.failure().message;
  EXPECT_EQ(checkpoint.value().tensors().size(), 160u);
  EXPECT_EQ(count_mtp(checkpoint.value()), 19);
  EXPECT_THAT(checkpoint.value().notes(), IsEmpty());
  const StoredTensor* fused =
      checkpoint.value().find("model.language_model.layers.0.mlp.experts.gate_up_proj");
  ASSERT_NE(fused, nullptr);
  EXPECT_EQ(fused->shape.size(), 3u);
  EXPECT_EQ(fused->type, StoredType::bf16);
}

TEST(RealModels, MinnowFp8) {
  const fs::path folder = kShared / "minnow/fp8";
  if (!fs::exists(folder)) GTEST_SKIP() << folder << " is absent";
  const auto checkpoint = Checkpoint::open(folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.failure().message;
  EXPECT_EQ(checkpoint.value().tensors().size(), 3u + 357u + 358u + 345u);
  EXPECT_THAT(checkpoint.value().notes(), IsEmpty());
  const auto tensors = checkpoint.value().tensors();
  EXPECT_TRUE(std::any_of(tensors.begin(), tensors.end(), [](const StoredTensor& tensor) {
    return tensor.type == StoredType::f8_e4m3;
  }));
}

TEST(RealModels, TinyGoldensOpenWithoutTheGoldenFile) {
  const fs::path goldens = kShared / "goldens/tiny";
  if (!fs::exists(goldens)) GTEST_SKIP() << goldens << " is absent";
  int opened = 0;
  for (const auto& entry : fs::directory_iterator(goldens)) {
    if (!entry.is_directory()) continue;
    SCOPED_TRACE(entry.path().string());
    const auto checkpoint = Checkpoint::open(entry.path());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.failure().message;
    EXPECT_GT(checkpoint.value().tensors().size(), 40u);
    EXPECT_EQ(checkpoint.value().find("far.logits"), nullptr);
    EXPECT_THAT(checkpoint.value().notes(), ElementsAre(HasSubstr("golden.safetensors")));
    EXPECT_TRUE(read_config_json(entry.path()).ok());
    ++opened;
  }
  EXPECT_EQ(opened, 10);
}

}  // namespace
}  // namespace slip
