// Checkpoints under every spelling of their names, with tensors missing or in surplus, and how much
// memory a loaded model takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "checkpoint/checkpoint.h"
#include "kernels/cpu/cpu_ops.h"
#include "kernels/ref/ref_ops.h"
#include "models/model_source.h"
#include "tests/checkpoint/test_files.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {
namespace {

// The new name of a tensor; empty leaves it out.
using Rename = std::function<std::string(const std::string& name)>;

void write_renamed(const std::filesystem::path& from, const std::filesystem::path& to,
                   const Rename& rename) {
  const Checkpoint checkpoint = Checkpoint::open(from).value();
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : checkpoint.tensors())
    if (std::string name = rename(tensor.name); !name.empty())
      tensors.push_back({std::move(name), tensor.type, tensor.shape, tensor.data});
  ASSERT_TRUE(write_safetensors(to / "model.safetensors", tensors, "pt").ok());
  std::filesystem::copy(from / "config.json", to / "config.json");
}

std::string replace_prefix(const std::string& name, const std::string& from,
                           const std::string& to) {
  return name.starts_with(from) ? to + name.substr(from.size()) : name;
}

const std::filesystem::path kTiny = golden_folder() / "tiny/qwen3_5_moe_split";

TEST(Prefixes, EveryPublishedSpellingLoadsTheSameModel) {
  const std::vector<int32_t> ids = GoldenFile(kTiny / "golden.safetensors").ints("short.ids");
  const std::vector<float> expected =
      LoadedModel(kTiny, fast_backends().front()).logits(ids).values;
  struct Spelling {
    const char *text, *head;
  };
  for (const Spelling spelling :
       {Spelling{"model.", "lm_head."}, Spelling{"language_model.model.", "lm_head."},
        Spelling{"language_model.model.", "language_model.lm_head."},
        Spelling{"model.language_model.", "model.lm_head."}}) {
    const TempFolder folder;
    write_renamed(kTiny, folder.path(), [&](const std::string& name) {
      return replace_prefix(replace_prefix(name, "lm_head.", spelling.head),
                            "model.language_model.", spelling.text);
    });
    LoadedModel model(folder.path(), fast_backends().front());
    EXPECT_EQ(model.logits(ids).values, expected) << spelling.text << " " << spelling.head;
  }
}

TEST(Prefixes, TheMtpLayerIsFoundUnderEverySpelling) {
  const std::unique_ptr<Ops> ops = make_ref_ops();
  const ModelOptions options{.max_rows = 1, .context = 64, .with_drafter = true};
  const ModelPlan expected = ModelSource::open(minnow_folder()).value().plan(options, *ops).value();
  ASSERT_TRUE(expected.info.drafter);
  for (const char* prefix : {"model.mtp.", "language_model.mtp.", "model.language_model.mtp."}) {
    const TempFolder folder;
    write_renamed(minnow_folder(), folder.path(),
                  [&](const std::string& name) { return replace_prefix(name, "mtp.", prefix); });
    const Result<ModelSource> source = ModelSource::open(folder.path());
    ASSERT_TRUE(source.ok()) << source.failure().message;
    EXPECT_TRUE(source.value().can_draft()) << prefix;
    const Result<ModelPlan> plan = source.value().plan(options, *ops);
    ASSERT_TRUE(plan.ok()) << plan.failure().message;
    EXPECT_EQ(plan.value().weight_bytes, expected.weight_bytes) << prefix;
  }
}

// What loading a changed tiny checkpoint says.
Status load_changed(const Rename& rename) {
  const TempFolder folder;
  write_renamed(kTiny, folder.path(), rename);
  SLIP_TRY(const ModelSource source, ModelSource::open(folder.path()));
  ThreadPool pool(2);
  const std::unique_ptr<Ops> ops = make_ref_ops();
  SLIP_TRY([[maybe_unused]] const std::unique_ptr<Model> model,
           source.load({.max_rows = 8, .context = 64}, *ops, pool, {}));
  return {};
}

TEST(Loading, NamesMissingTensors) {
  const std::string layers = "model.language_model.layers.";
  for (const std::string& missing :
       {layers + "0.linear_attn.A_log", layers + "3.self_attn.o_proj.weight",
        layers + "1.mlp.experts.2.up_proj.weight", std::string("lm_head.weight"),
        std::string("model.language_model.norm.weight")})
    expect_error(load_changed([&](const std::string& name) { return name == missing ? "" : name; }),
                 {"tensor " + missing, "missing"});
  expect_error(load_changed([](const std::string& name) {
                 return name.find("embed_tokens") == std::string::npos ? name : "";
               }),
               {"embed_tokens.weight", "model.language_model.", "Qwen3.5"});
}

TEST(Loading, NamesTensorsItDoesNotUse) {
  const TempFolder folder;
  write_renamed(kTiny, folder.path(), [](const std::string& name) { return name; });
  const float value = 0;
  const TensorToWrite extra{"model.language_model.layers.0.linear_attn.bias",
                            StoredType::f32,
                            {1},
                            std::as_bytes(std::span(&value, 1))};
  ASSERT_TRUE(write_safetensors(folder.path() / "model_extra.safetensors", {&extra, 1}, "pt").ok());
  ThreadPool pool(2);
  const std::unique_ptr<Ops> ops = make_ref_ops();
  const ModelSource source = ModelSource::open(folder.path()).value();
  expect_error(source.load({.max_rows = 8, .context = 64}, *ops, pool, {}),
               {"1 tensors", "layers.0.linear_attn.bias", "config.json"});
}

TEST(Loading, VisionTowersAreSkipped) {
  const Checkpoint checkpoint = Checkpoint::open(golden_folder() / "tiny/qwen3_5_dense").value();
  const bool has_vision = std::ranges::any_of(checkpoint.tensors(), [](const StoredTensor& tensor) {
    return tensor.name.starts_with("model.visual.");
  });
  ASSERT_TRUE(has_vision) << "the test needs a checkpoint with a vision tower";
  LoadedModel model(golden_folder() / "tiny/qwen3_5_dense", ref_backend());
  EXPECT_EQ(model.engine().model().info().family, "qwen3_5");
}

TEST(Loading, NotesThatTheIndexForgetsTheMtpLayer) {
  const ModelSource source = ModelSource::open(minnow_folder()).value();
  EXPECT_TRUE(source.can_draft());
  EXPECT_THAT(source.notes(), ::testing::Contains(::testing::HasSubstr("mtp")));
}

uint64_t resident_bytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.starts_with("VmRSS:")) return std::stoull(line.substr(6)) * 1024;
  return 0;
}

// File pages are dropped as they are repacked, buffers for repacking are gone.
void expect_little_memory(const std::filesystem::path& folder) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "NOT TESTED: sanitizers take memory of their own";
#endif
  ThreadPool pool(2);
  const std::unique_ptr<Ops> ops = make_cpu_ops(pool);
  const uint64_t before = resident_bytes();
  if (before == 0) GTEST_SKIP() << "NOT TESTED: no /proc/self/status";
  const ModelSource source = ModelSource::open(folder).value();
  const std::unique_ptr<Model> model =
      source.load({.max_rows = 64, .context = 64, .with_drafter = true}, *ops, pool, {}).value();
  const uint64_t taken = resident_bytes() - before;
  ::testing::Test::RecordProperty("resident", std::to_string(taken));
  EXPECT_LE(double(taken), 1.3 * double(model->weight_bytes()))
      << taken << " bytes resident, weights take " << model->weight_bytes();
}

TEST(Loading, TakesLittleMoreMemoryThanTheWeights) { expect_little_memory(minnow_folder()); }

TEST(Loading, TakesLittleMoreMemoryThanFusedWeights) {
  SLIP_SKIP_WITHOUT_SHARED();
  expect_little_memory(shared_folder() / "minnow/bf16");
}

}  // namespace
}  // namespace slip
