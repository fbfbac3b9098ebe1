#include "convert/hybrid.h"

#include "checkpoint/index.h"
#include "convert/check_folder.h"
#include "convert/remote_source.h"
#include "tests/convert/converted.h"
#include "tests/golden/compare.h"
#include "tests/hub/stand_in_hub.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

// INT4 and FP8 of one tiny model.
class Hybrid : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        quantize_folder(tiny_folder("qwen3_5_moe"), int4(), tiny_options(StoredForm::int4)).ok());
    ASSERT_TRUE(
        quantize_folder(tiny_folder("qwen3_5_moe"), fp8(), tiny_options(StoredForm::fp8)).ok());
  }
  fs::path int4() const { return temp_.path() / "int4"; }
  fs::path fp8() const { return temp_.path() / "fp8"; }
  fs::path out() const { return temp_.path() / "out"; }
  Result<HybridResult> make(bool full = false, LinkWay link = LinkWay::automatic) const {
    SLIP_TRY(const std::unique_ptr<FolderSource> source, FolderSource::open(fp8()));
    return hybrid_of(int4(), *source, out(), full, link);
  }

  TempFolder temp_;
};

const std::string kShared = "model.layers.0.mlp.shared_expert.up_proj.weight";

TEST_F(Hybrid, OverlayLinksAndReplaces) {
  const auto result = make();
  ASSERT_TRUE(result.ok()) << result.failure().message;
  EXPECT_EQ(result.value().copied, 0u);
  EXPECT_TRUE(fs::equivalent(out() / "model-00001-of-00001.safetensors",
                             int4() / "model-00001-of-00001.safetensors"));
  const Checkpoint made = Checkpoint::open(out()).value(), from = Checkpoint::open(fp8()).value();
  ASSERT_TRUE(made.find(kShared));
  EXPECT_EQ(made.find(kShared)->type, StoredType::f8_e4m3);
  EXPECT_EQ(made.find(kShared)->path().filename(), kHybridFile);
  EXPECT_TRUE(std::ranges::equal(made.find(kShared)->data, from.find(kShared)->data));
  EXPECT_TRUE(made.find(kShared + "_scale_inv"));
  // What other loaders read: INT4's own description, and a note.
  const Json config = json_of(out() / "config.json");
  EXPECT_EQ(config.at("quantization_config"),
            json_of(int4() / "config.json").at("quantization_config"));
  EXPECT_GT(config.at("_hybrid_quant_info").at("fp8_modules").as_int64(), 0);
  ThreadPool pool(1);
  const FolderReport report = check_folder(out(), *make_cpu_ops(pool));
  EXPECT_TRUE(report.good()) << report.problems.front();
}

TEST_F(Hybrid, FullHasTheSameTensorsOnce) {
  ASSERT_TRUE(make().ok());
  const fs::path overlay = temp_.path() / "overlay";
  fs::rename(out(), overlay);
  ASSERT_TRUE(make(true).ok());
  expect_same_tensors(overlay, out());
  EXPECT_FALSE(fs::exists(out() / kHybridFile));
  EXPECT_TRUE(Checkpoint::open(out()).value().notes().empty());  // no tensor twice
}

TEST_F(Hybrid, ASecondRunHasNothingToDo) {
  EXPECT_FALSE(make().value().was_there);
  EXPECT_TRUE(make().value().was_there);
  expect_error(make(true), {"is there already"});
  // A file that was cut afterwards is noticed.
  fs::resize_file(out() / kHybridFile, 1000);
  expect_error(make(), {"is there already"});
}

TEST_F(Hybrid, PlanSaysWhatStaysAndWhy) {
  const Checkpoint checkpoint = Checkpoint::open(int4()).value();
  const auto source = FolderSource::open(fp8()).value();
  const HybridPlan none = plan_hybrid(checkpoint, *source, {TensorClass::head}).value();
  EXPECT_TRUE(none.replacements.empty());
  const HybridPlan plan = plan_hybrid(checkpoint, *source, {TensorClass::shared_experts}).value();
  EXPECT_EQ(none.left.at(TensorClass::shared_experts).at(LeftBecause::not_chosen),
            int64_t(plan.replacements.size()));
  EXPECT_GT(plan.left.at(TensorClass::routed_experts).at(LeftBecause::int4_already), 0);
  EXPECT_GT(plan.left.at(TensorClass::norms).at(LeftBecause::plain_in_both), 0);
  EXPECT_LT(plan.bytes_after(), plan.bytes_before());
}

TEST_F(Hybrid, RefusesAnotherModel) {
  // A fine-tune: the same names and shapes, other numbers.
  overwrite(fp8(), kShared + "_scale_inv", 0, std::string("\x00\x3f", 2));
  expect_error(make(), {kShared, "not of the same model"});
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(Hybrid, RefusesDamage) {
  overwrite(fp8(), kShared, 33, "\x7f");
  expect_error(make(), {"fp8", kShared, "NaN", "output row 1, input 1"});
  fs::resize_file(fp8() / "model-00001-of-00001.safetensors", 100'000);
  expect_error(make(), {"fp8/model-00001-of-00001.safetensors"});
}

TEST_F(Hybrid, RefusesOtherShapes) {
  const fs::path other = temp_.path() / "other";
  ASSERT_TRUE(
      quantize_folder(tiny_folder("qwen3_5_moe_split"), other, tiny_options(StoredForm::int4))
          .ok());
  const auto source = FolderSource::open(fp8()).value();
  expect_error(hybrid_of(other, *source, out()),
               {"shared_expert", "[64, 48]", "[32, 32]", "not of the same model"});
}

// Only what is needed is fetched from a hub.
TEST_F(Hybrid, FromARemoteRepository) {
  StandInHub hub;
  uint64_t size = 0;
  for (const auto& entry : fs::directory_iterator(fp8())) {
    const std::string name = entry.path().filename().string();
    const std::string content = read_text_file(entry.path()).value();
    if (name.ends_with(".safetensors")) size += content.size();
    hub.add(name, content, name.ends_with(".safetensors"));
  }
  ASSERT_TRUE(make().ok());
  const fs::path local = temp_.path() / "local";
  fs::rename(out(), local);
  HubSettings settings;
  settings.endpoint = hub.endpoint();
  settings.retries.first_wait_seconds = 0.01;
  // Every third request for content breaks off.
  hub.on_request([](const HubRequest& request) {
    return request.to_storage && request.number % 3 == 0 ? HubFault{.cut_after = 700} : HubFault{};
  });
  const std::atomic<bool> interrupted{false};
  const auto remote = RemoteSource::open(*parse_repo_id("org/model"), settings, interrupted);
  ASSERT_TRUE(remote.ok()) << remote.failure().message;
  const auto result = hybrid_of(int4(), *remote.value(), out());
  ASSERT_TRUE(result.ok()) << result.failure().message;
  expect_same_tensors(local, out());
  EXPECT_LT(hub.bytes_sent(), size / 2);
}

TEST_F(Hybrid, RefusesAnIndexThatFillsTheMemory) {
  StandInHub hub;
  hub.add(std::string(kIndexName), "{}", true);
  hub.claim_size(std::string(kIndexName), uint64_t{1} << 45);
  HubSettings settings;
  settings.endpoint = hub.endpoint();
  const std::atomic<bool> interrupted{false};
  expect_error(RemoteSource::open(*parse_repo_id("org/model"), settings, interrupted),
               {"org/model", std::string(kIndexName), "more than"});
}

TEST(MinnowHybridConverted, LogitsAreTheGoldenOnes) {
  SLIP_SKIP_WITHOUT_SHARED();
  const TempFolder temp;
  const auto source = FolderSource::open(shared_folder() / "minnow/fp8").value();
  const auto result = hybrid_of(shared_folder() / "minnow/int4", *source, temp.path() / "hybrid");
  ASSERT_TRUE(result.ok()) << result.failure().message;
  LoadedModel model(temp.path() / "hybrid", fast_backends().front(), {.with_drafter = true});
  const GoldenFile golden(shared_folder() / "goldens/minnow/weights_hybrid.safetensors");
  Differences logits;
  for (const std::string name : {"story", "docs_page", "tool_call", "needle_1500"})
    logits.add(model.logits(prompt_ids(name)), golden, name + ".",
               golden.floats(name + ".router_gap"), 1e-4f);
  logits.expect_within(Arithmetic::int16_activations);
}

}  // namespace
}  // namespace slip
