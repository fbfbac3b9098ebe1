// convert int4 and convert fp8: layout, choices, resuming, and the bytes of the published makers.
#include "convert/quantize.h"

#include "convert/check_folder.h"
#include "convert/quantize_config.h"
#include "tests/convert/converted.h"

namespace slip {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

fs::path minnow(const char* form) { return shared_folder() / "minnow" / form; }

TEST(QuantizeInt4, IsByteForByteWhatTheGoldensHold) {
  SLIP_SKIP_WITHOUT_SHARED();
  const TempFolder temp;
  const fs::path out = temp.path() / "int4";
  ASSERT_TRUE(
      quantize_folder(minnow("bf16"), out, {.choices = autoround_choices(), .mtp_apart = true})
          .ok());
  expect_same_tensors(out, minnow("int4"));
  EXPECT_EQ(json_of(out / "config.json"), json_of(minnow("int4") / "config.json"));
  EXPECT_EQ(json_of(out / "quantization_config.json"),
            json_of(minnow("int4") / "quantization_config.json"));
  // Their index forgets the MTP tensors; ours does not.
  EXPECT_EQ(json_of(out / "model.safetensors.index.json").at("metadata"),
            json_of(minnow("int4") / "model.safetensors.index.with_mtp.json").at("metadata"));
}

TEST(QuantizeFp8, IsByteForByteWhatTheGoldensHold) {
  SLIP_SKIP_WITHOUT_SHARED();
  const TempFolder temp;
  const fs::path out = temp.path() / "fp8";
  ASSERT_TRUE(quantize_folder(minnow("bf16"), out, {.choices = fp8_choices()}).ok());
  expect_same_tensors(out, minnow("fp8"));
  EXPECT_EQ(json_of(out / "config.json"), json_of(minnow("fp8") / "config.json"));
}

// Fused experts of the source are single ones in the result, and the loader takes all of it.
TEST(Quantize, TinyModelsLoad) {
  const std::unique_ptr<ThreadPool> pool = std::make_unique<ThreadPool>(1);
  const std::unique_ptr<Ops> ops = make_cpu_ops(*pool);
  for (const std::string name : {"qwen3_5_moe", "qwen3_5_moe_split", "qwen3_5_dense"}) {
    for (const StoredForm form : {StoredForm::int4, StoredForm::fp8}) {
      SCOPED_TRACE(name);
      const TempFolder temp;
      const fs::path out = temp.path() / "out";
      const auto result = quantize_folder(tiny_folder(name), out, tiny_options(form));
      ASSERT_TRUE(result.ok()) << result.failure().message;
      FolderReport report = check_folder(out, *ops);
      EXPECT_TRUE(report.good()) << report.problems.front();
      ASSERT_TRUE(check_numbers(out, *pool, report, kNoProgress).ok());
      EXPECT_TRUE(report.good()) << report.problems.front();
    }
  }
}

TEST(Quantize, LayoutOfInt4) {
  const TempFolder temp;
  const fs::path out = temp.path() / "out";
  ASSERT_TRUE(
      quantize_folder(tiny_folder("qwen3_5_moe"), out, tiny_options(StoredForm::int4)).ok());
  const Checkpoint made = Checkpoint::open(out).value();
  const std::string layer = "model.layers.0.";
  const auto expect = [&](const std::string& name, StoredType type, std::vector<int64_t> shape) {
    const StoredTensor* tensor = made.find(name);
    ASSERT_TRUE(tensor) << name;
    EXPECT_EQ(tensor->type, type) << name;
    EXPECT_EQ(tensor->shape, shape) << name;
  };
  expect(layer + "mlp.experts.7.up_proj.qweight", StoredType::i32, {4, 32});
  expect(layer + "mlp.experts.7.up_proj.qzeros", StoredType::i32, {1, 4});
  expect(layer + "mlp.experts.7.up_proj.scales", StoredType::f16, {1, 32});
  expect(layer + "linear_attn.out_proj.qweight", StoredType::i32, {128, 32});
  expect(layer + "linear_attn.in_proj_a.weight", StoredType::bf16, {8, 32});
  expect(layer + "mlp.shared_expert.up_proj.weight", StoredType::bf16, {32, 32});
  expect(layer + "mlp.gate.weight", StoredType::bf16, {8, 32});
  expect("lm_head.weight", StoredType::bf16, {288, 32});
  EXPECT_FALSE(made.find(layer + "mlp.experts.gate_up_proj"));
  const Json config = json_of(out / "config.json").at("quantization_config");
  EXPECT_EQ(config, json_of(out / "quantization_config.json"));
  EXPECT_EQ(config.at("quant_method"), "auto-round");
  EXPECT_EQ(config.at("packing_format"), "auto_round:auto_gptq");
  EXPECT_EQ(config.at("group_size"), 32);
  EXPECT_EQ(config.at("block_name_to_quantize"), "model.layers");
  const JsonObject& extra = config.at("extra_config").get_object();
  EXPECT_TRUE(extra.contains(layer + "mlp.shared_expert.up_proj"));
  EXPECT_TRUE(extra.contains(layer + "linear_attn.in_proj_a"));
  EXPECT_FALSE(extra.contains(layer + "mlp.gate"));
  EXPECT_FALSE(extra.contains(layer + "mlp.experts.0.up_proj"));
}

TEST(Quantize, ClassesMayBeChosen) {
  const TempFolder temp;
  const fs::path out = temp.path() / "out";
  QuantizeOptions options = tiny_options(StoredForm::int4);
  options.choices[TensorClass::shared_experts] = StoredForm::fp8;
  options.choices[TensorClass::head] = StoredForm::int4;
  options.choices.erase(TensorClass::attention);
  ASSERT_TRUE(quantize_folder(tiny_folder("qwen3_5_moe"), out, options).ok());
  const Checkpoint made = Checkpoint::open(out).value();
  EXPECT_TRUE(made.find("model.layers.0.mlp.shared_expert.up_proj.weight_scale_inv"));
  EXPECT_TRUE(made.find("lm_head.qweight"));
  for (const StoredTensor& tensor : made.tensors())
    EXPECT_FALSE(tensor.name.find("self_attn") != std::string::npos &&
                 tensor.name.ends_with(".qweight"))
        << tensor.name;
}

TEST(Quantize, ASecondRunHasNothingToDo) {
  const TempFolder temp;
  const fs::path out = temp.path() / "out";
  const auto options = tiny_options(StoredForm::int4);
  EXPECT_FALSE(quantize_folder(tiny_folder("qwen3_5_moe"), out, options).value().was_there);
  EXPECT_TRUE(quantize_folder(tiny_folder("qwen3_5_moe"), out, options).value().was_there);
  // Another model under the same name is not overwritten.
  expect_error(quantize_folder(tiny_folder("qwen3_5_moe_split"), out, options),
               {"out", "is there already"});
}

TEST(Quantize, GoesOnWhereItWasInterrupted) {
  const TempFolder temp;
  const fs::path whole = temp.path() / "whole", out = temp.path() / "out";
  QuantizeOptions options = tiny_options(StoredForm::int4);
  options.file_bytes = 200'000;
  ASSERT_TRUE(quantize_folder(tiny_folder("qwen3_5_moe"), whole, options).ok());
  bool finished = false;
  int runs = 0;
  for (uint64_t stop_at = 300'000; !finished && runs < 20; stop_at += 300'000, ++runs) {
    const auto result = quantize_folder(tiny_folder("qwen3_5_moe"), out, options,
                                        [&](uint64_t done, uint64_t) { return done < stop_at; });
    finished = result.ok();
    if (!finished) {
      EXPECT_THAT(result.failure().message, HasSubstr("run it again"));
      EXPECT_FALSE(fs::exists(out));
    }
  }
  EXPECT_TRUE(finished);
  EXPECT_GT(runs, 2);
  expect_same_tensors(whole, out);
}

TEST(Quantize, RefusesBadInputByName) {
  const TempFolder temp;
  const fs::path copy = copy_model(tiny_folder("qwen3_5_moe"), temp, "nan");
  const std::string tensor = "model.layers.0.mlp.experts.gate_up_proj";
  overwrite(copy, tensor, 64 * 32 * 2 * 3 + 2 * 32 * 5, std::string("\xc0\x7f", 2));  // bf16 NaN
  expect_error(
      quantize_folder(copy, temp.path() / "out", tiny_options(StoredForm::int4)),
      {"model.safetensors", "model.layers.0.mlp.experts.3.gate_proj.weight", "row 5", "NaN"});
  EXPECT_FALSE(fs::exists(temp.path() / "out"));
  expect_error(
      quantize_folder(minnow_folder(), temp.path() / "out", tiny_options(StoredForm::int4)),
      {"quantized already"});
  fs::resize_file(copy / "model.safetensors", 100'000);
  expect_error(quantize_folder(copy, temp.path() / "out", tiny_options(StoredForm::int4)),
               {"model.safetensors"});
}

}  // namespace
}  // namespace slip
