#include "convert/calibrate.h"

#include <random>

#include "convert/capturing_ops.h"
#include "engine/session.h"
#include "tests/convert/converted.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

CalibrationText random_text(int64_t samples, int64_t length, int32_t vocabulary) {
  std::mt19937 random(3);
  CalibrationText text{.samples = {}, .origin = "test"};
  for (int64_t i = 0; i < samples; ++i) {
    std::vector<int32_t>& ids = text.samples.emplace_back();
    for (int64_t j = 0; j < length; ++j) ids.push_back(int32_t(random() % uint32_t(vocabulary)));
  }
  return text;
}

// A tiny model rounded to nearest, and what calibration makes of it.
class Calibrate : public ::testing::Test {
 protected:
  Calibrate()
      : pool_(2),
        ops_(make_cpu_ops(pool_)),
        source_(Checkpoint::open(tiny_folder("qwen3_5_moe")).value()),
        plan_(plan_quantization(source_, tiny_options(StoredForm::int4)).value()),
        text_(random_text(6, 64, 288)) {
    EXPECT_TRUE(
        quantize_folder(tiny_folder("qwen3_5_moe"), rounded(), tiny_options(StoredForm::int4))
            .ok());
    fs::create_directories(work());
  }
  fs::path rounded() const { return temp_.path() / "rounded"; }
  fs::path work() const { return temp_.path() / "work"; }
  CalibrateRequest request() const {
    return {.source = source_, .plan = plan_, .rounded = rounded(), .work = work(), .text = text_};
  }
  Result<std::unique_ptr<CalibratedCodes>> run(const OnCalibration& progress) {
    return CalibratedCodes::make(request(), *ops_, pool_, progress);
  }

  TempFolder temp_;
  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
  Checkpoint source_;
  QuantizePlan plan_;
  CalibrationText text_;
};

TEST_F(Calibrate, EveryLayerGetsBetter) {
  auto codes = run([](const CalibrateProgress&) { return true; });
  ASSERT_TRUE(codes.ok()) << codes.failure().message;
  ASSERT_GE(codes.value()->errors().size(), 2u);
  for (const LayerErrors& layer : codes.value()->errors()) {
    EXPECT_GT(layer.before, 0) << layer.layer;
    EXPECT_LT(layer.after, 0.9 * layer.before) << layer.layer;
  }
  const auto made = quantize_checkpoint({.source = source_,
                                         .plan = plan_,
                                         .quantization_config = autoround_config(plan_, {}),
                                         .hybrid_note = {},
                                         .out = temp_.path() / "out",
                                         .codes = codes.value().get()},
                                        pool_, kNoProgress);
  ASSERT_TRUE(made.ok()) << made.failure().message;
  const Checkpoint nearest = Checkpoint::open(rounded()).value();
  const Checkpoint better = Checkpoint::open(temp_.path() / "out").value();
  const std::string name = "model.layers.0.linear_attn.out_proj.qweight";
  EXPECT_FALSE(std::ranges::equal(nearest.find(name)->data, better.find(name)->data));
}

TEST_F(Calibrate, GoesOnWithTheLayersThatAreThere) {
  const auto stopped = run([](const CalibrateProgress& now) { return now.layer < 1; });
  expect_error(stopped, {"run it again"});
  EXPECT_TRUE(fs::exists(work() / "layer-0.safetensors"));
  EXPECT_FALSE(fs::exists(work() / "layer-1.safetensors"));
  const auto resumed = run([](const CalibrateProgress&) { return true; });
  ASSERT_TRUE(resumed.ok());
  const std::string first = read_text_file(work() / "layer-1.safetensors").value();
  fs::remove_all(work());
  fs::create_directories(work());
  ASSERT_TRUE(run([](const CalibrateProgress&) { return true; }).ok());
  // Whether in one go or in two, the later layer is the same.
  EXPECT_TRUE(first == read_text_file(work() / "layer-1.safetensors").value());
}

// What is captured is what went in, and the pass is not disturbed.
TEST_F(Calibrate, CapturingChangesNothing) {
  const ModelSource model = ModelSource::open(rounded()).value();
  EngineOptions options;
  options.memory.context = 64;
  const auto logits_of = [&](Ops& ops, const std::function<void(Engine&)>& prepare) {
    auto engine = Engine::load(model, options, ops, pool_, {});
    EXPECT_TRUE(engine.ok());
    prepare(*engine.value());
    Session session(*engine.value());
    EXPECT_TRUE(session.feed(text_.samples[0]).ok());
    const std::span<const float> logits = session.logits();
    return std::vector<float>(logits.begin(), logits.end());
  };
  const std::vector<float> expected = logits_of(*ops_, [](Engine&) {});
  CapturingOps capturing(*ops_, pool_);
  const std::string layer = "model.layers.0.", expert = layer + "mlp.experts.0.";
  const std::vector<float> found = logits_of(capturing, [&](Engine& engine) {
    capturing.name_weights(engine.model().placed_weights());
    capturing.watch({layer + "linear_attn.in_proj_qkv", layer + "linear_attn.in_proj_z",
                     expert + "gate_proj", expert + "up_proj", expert + "down_proj"},
                    "");
  });
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-2) << i;

  const Gram* qkv = capturing.gram_of(layer + "linear_attn.in_proj_qkv");
  ASSERT_TRUE(qkv);
  EXPECT_EQ(qkv->rows, 64);
  EXPECT_EQ(qkv, capturing.gram_of(layer + "linear_attn.in_proj_z"));
  // Inputs are normed: the mean square of a row is that of the norm's scale.
  double trace = 0;
  for (int64_t i = 0; i < qkv->inputs; ++i) trace += qkv->products[size_t(i * qkv->inputs + i)];
  EXPECT_GT(trace, 0);
  const Gram* gate = capturing.gram_of(expert + "gate_proj");
  ASSERT_TRUE(gate);
  EXPECT_EQ(gate, capturing.gram_of(expert + "up_proj"));
  EXPECT_LT(gate->rows, 64);
  const Gram* down = capturing.gram_of(expert + "down_proj");
  ASSERT_TRUE(down);
  EXPECT_NE(gate, down);
  EXPECT_EQ(gate->rows, down->rows);
}

// Whatever operations a family's layers go through, what its matrices read is seen. Layers that
// share the keys of others leave their own projections in the files unread.
TEST_F(Calibrate, GemmaIsSeenWhole) {
  const fs::path folder = tiny_folder("gemma4_e");
  const Checkpoint source = Checkpoint::open(folder).value();
  const QuantizeOptions options = tiny_options(StoredForm::int4);
  const QuantizePlan plan = plan_quantization(source, options).value();
  const fs::path nearest = temp_.path() / "gemma";
  ASSERT_TRUE(quantize_folder(folder, nearest, options).ok());
  const CalibrateRequest request{
      .source = source, .plan = plan, .rounded = nearest, .work = work(), .text = text_};
  const auto codes =
      CalibratedCodes::make(request, *ops_, pool_, [](const CalibrateProgress&) { return true; });
  ASSERT_TRUE(codes.ok()) << codes.failure().message;
  for (const LayerErrors& layer : codes.value()->errors())
    EXPECT_LT(layer.after, 0.9 * layer.before) << layer.layer;

  CapturingOps capturing(*ops_, pool_);
  EngineOptions engine_options;
  engine_options.memory.context = 64;
  const auto engine =
      Engine::load(ModelSource::open(nearest).value(), engine_options, capturing, pool_, {});
  ASSERT_TRUE(engine.ok()) << engine.failure().message;
  capturing.name_weights(engine.value()->model().placed_weights());
  std::vector<std::string> modules;
  int unread = 0;
  for (const PlannedFile& file : plan.files) {
    for (const PlannedTensor& tensor : file.tensors) {
      if (tensor.form != StoredForm::int4) continue;
      if (capturing.knows(tensor.module()))
        modules.push_back(tensor.module());
      else
        ++unread;
    }
  }
  EXPECT_GT(modules.size(), 20u);
  EXPECT_GT(unread, 0);
  capturing.watch(modules, "");
  Session session(*engine.value());
  ASSERT_TRUE(session.feed(text_.samples[0]).ok());
  for (const std::string& module : modules) EXPECT_TRUE(capturing.gram_of(module)) << module;
}

}  // namespace
}  // namespace slip
