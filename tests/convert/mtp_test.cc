#include "convert/mtp.h"

#include "models/model_source.h"
#include "tests/convert/converted.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

TEST(ConvertMtp, RegistersWhatTheIndexForgot) {
  const TempFolder temp;
  const fs::path to = copy_model(minnow_folder(), temp, "minnow");
  EXPECT_EQ(add_mtp({.from = {}, .to = to, .dry_run = true}).value().done,
            MtpResult::Done::registered);
  const MtpResult first = add_mtp({.from = {}, .to = to}).value();
  EXPECT_EQ(first.done, MtpResult::Done::registered);
  EXPECT_EQ(first.tensors, 65);
  EXPECT_TRUE(Checkpoint::open(to).value().notes().empty());
  const Json index = json_of(to / "model.safetensors.index.json");
  EXPECT_EQ(index.at("weight_map").at("mtp.fc.weight"), "model_extra_tensors.safetensors");
  EXPECT_EQ(add_mtp({.from = {}, .to = to}).value().done, MtpResult::Done::nothing);
}

TEST(ConvertMtp, CopiesFromAnotherCheckpoint) {
  const TempFolder temp;
  const fs::path to = copy_model(minnow_folder(), temp, "minnow");
  fs::remove(to / kMtpFile);
  expect_error(add_mtp({.from = {}, .to = to}), {"minnow", "no MTP tensors", "no checkpoint"});
  EXPECT_EQ(add_mtp({.from = minnow_folder(), .to = to, .dry_run = true}).value().done,
            MtpResult::Done::copied);
  EXPECT_FALSE(fs::exists(to / kMtpFile));
  EXPECT_EQ(add_mtp({.from = minnow_folder(), .to = to}).value().done, MtpResult::Done::copied);
  expect_same_tensors(to, minnow_folder());
  EXPECT_TRUE(ModelSource::open(to).value().can_draft());
  EXPECT_EQ(add_mtp({.from = minnow_folder(), .to = to}).value().done, MtpResult::Done::nothing);
}

// The BF16 checkpoint holds the experts of the layer fused.
TEST(ConvertMtp, SplitsFusedExperts) {
  SLIP_SKIP_WITHOUT_SHARED();
  const TempFolder temp;
  const fs::path to = copy_model(minnow_folder(), temp, "minnow");
  fs::remove(to / kMtpFile);
  ASSERT_TRUE(add_mtp({.from = shared_folder() / "minnow/bf16", .to = to}).ok());
  expect_same_tensors(to, minnow_folder());
}

TEST(ConvertMtp, RefusesAnIncompleteLayer) {
  const TempFolder temp;
  const fs::path from = copy_model(minnow_folder(), temp, "from");
  const fs::path to = copy_model(minnow_folder(), temp, "to");
  fs::remove(to / kMtpFile);
  // All but one tensor.
  const Checkpoint whole = Checkpoint::open(minnow_folder()).value();
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : whole.tensors())
    if (tensor.name.starts_with("mtp.") && tensor.name != "mtp.norm.weight")
      tensors.push_back({tensor.name, tensor.type, tensor.shape, tensor.data});
  ASSERT_TRUE(write_safetensors(from / kMtpFile, tensors, "pt").ok());
  expect_error(add_mtp({.from = from, .to = to}), {"incomplete", "mtp.norm.weight"});
  expect_error(add_mtp({.from = {}, .to = from}), {"incomplete", "mtp.norm.weight"});
  EXPECT_FALSE(fs::exists(to / kMtpFile));
  expect_error(add_mtp({.from = tiny_folder("qwen3_5_moe"), .to = to}), {"no MTP tensors"});
}

}  // namespace
}  // namespace slip
