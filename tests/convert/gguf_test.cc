// minnow as GGUF, number by number against the checkpoint.
#include "convert/gguf.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "checkpoint/config_reader.h"
#include "models/qwen3_5/weights.h"
#include "tests/convert/gguf_file_reader.h"
#include "text/tokenizer.h"
#include "weights/checkpoint_source.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

const fs::path kMinnow = SLIP_SOURCE_DIR "/models/minnow";

class Gguf : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / cat("slip_gguf_test_", ::getpid());
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  GgufResult export_minnow(const fs::path& out, bool with_mtp = true) const {
    Result<GgufResult> result =
        export_gguf({.model = kMinnow, .shape = "", .out = out, .with_mtp = with_mtp},
                    [](uint64_t, uint64_t) { return true; });
    EXPECT_TRUE(result.ok()) << result.failure().message;
    return result.ok() ? result.value() : GgufResult();
  }

  fs::path folder_;
};

// A matrix of the checkpoint.
class Matrix {
 public:
  Matrix(const std::string& module, int64_t out, int64_t in) {
    static const Checkpoint kCheckpoint = Checkpoint::open(kMinnow).value();
    CheckpointSource source(kCheckpoint, {});
    const WeightInfo info = source.describe(module, out, in).value();
    storage_.resize(plain_bytes(info));
    weight_ = plain_weight(info, storage_.data());
    EXPECT_TRUE(source.read(module, weight_).ok());
  }
  float at(int64_t row, int64_t column) const { return weight_at(weight_, row, column); }

 private:
  std::vector<std::byte> storage_;
  Weight weight_;
};

// minnow: 4 value heads of 128 for 2 key heads; hidden 384.
int64_t tiled(int64_t place) { return place % 2 * 2 + place / 2; }

TEST_F(Gguf, NumbersAreTheCheckpoints) {
  const GgufResult result = export_minnow(folder_ / "minnow.gguf");
  EXPECT_TRUE(result.has_mtp);
  EXPECT_EQ(result.rounded_bytes, 0u);
  const GgufFile file = GgufFile::read(folder_ / "minnow.gguf");
  EXPECT_EQ(int64_t(file.tensors.size()), result.tensors);
  const std::string layer = "model.language_model.layers.";
  int q4 = 0;
  for (const auto& [name, tensor] : file.tensors) q4 += tensor.type == 2;
  EXPECT_GT(q4, 40) << "INT4 became Q4_0";

  const Matrix q(layer + "3.self_attn.q_proj", 2048, 384);
  const Matrix qkv(layer + "0.linear_attn.in_proj_qkv", 1024, 384);
  const Matrix z(layer + "0.linear_attn.in_proj_z", 512, 384);
  const Matrix a(layer + "0.linear_attn.in_proj_a", 4, 384);
  const Matrix out(layer + "0.linear_attn.out_proj", 384, 512);
  const Matrix up(layer + "5.mlp.experts.13.up_proj", 128, 384);
  const Matrix router(layer + "5.mlp.gate", 16, 384);
  const Matrix fc("mtp.fc", 384, 768);
  for (int64_t i = 0; i < 384; i += 7) {
    EXPECT_EQ(file.value("blk.3.attn_q.weight", 1000, i), q.at(1000, i));
    EXPECT_EQ(file.value("blk.0.attn_qkv.weight", 300, i), qkv.at(300, i)) << "a key";
    for (int64_t place = 0; place < 4; ++place) {
      const int64_t head = tiled(place);
      EXPECT_EQ(file.value("blk.0.attn_qkv.weight", 512 + place * 128 + 5, i),
                qkv.at(512 + head * 128 + 5, i));
      EXPECT_EQ(file.value("blk.0.attn_gate.weight", place * 128 + 9, i), z.at(head * 128 + 9, i));
      EXPECT_EQ(file.value("blk.0.ssm_alpha.weight", place, i), a.at(head, i));
      EXPECT_EQ(file.value("blk.0.ssm_out.weight", i, place * 128 + 77),
                out.at(i, head * 128 + 77));
    }
    EXPECT_EQ(file.value("blk.5.ffn_up_exps.weight", 13 * 128 + 50, i), up.at(50, i));
    EXPECT_EQ(file.value("blk.5.ffn_gate_inp.weight", 11, i), router.at(11, i));
    EXPECT_EQ(file.value("blk.8.nextn.eh_proj.weight", i, 2 * i), fc.at(i, 2 * i));
  }
}

TEST_F(Gguf, SmallTensorsAreTransformed) {
  export_minnow(folder_ / "minnow.gguf");
  const GgufFile file = GgufFile::read(folder_ / "minnow.gguf");
  const Checkpoint checkpoint = Checkpoint::open(kMinnow).value();
  CheckpointSource source(checkpoint, {});
  const std::string layer = "model.language_model.layers.0.";
  const auto vector = [&](const std::string& name, const Shape& shape) {
    std::vector<float> values(size_t(shape.count()));
    EXPECT_TRUE(source.read_vector(name, shape, values).ok()) << name;
    return values;
  };
  const std::vector<float> norm = vector(layer + "input_layernorm.weight", {384});
  const std::vector<float> gated = vector(layer + "linear_attn.norm.weight", {128});
  const std::vector<float> rate = vector(layer + "linear_attn.A_log", {4});
  const std::vector<float> conv = vector(layer + "linear_attn.conv1d.weight", {1024, 1, 4});
  EXPECT_EQ(file.value("blk.0.attn_norm.weight", 0, 17), 1 + norm[17]);
  EXPECT_EQ(file.value("blk.0.ssm_norm.weight", 0, 17), gated[17]) << "this norm has no 1";
  for (int64_t place = 0; place < 4; ++place) {
    EXPECT_EQ(file.value("blk.0.ssm_a", 0, uint64_t(place)), -std::exp(rate[size_t(tiled(place))]));
    EXPECT_EQ(file.value("blk.0.ssm_conv1d.weight", uint64_t(512 + place * 128 + 3), 2),
              conv[size_t(512 + tiled(place) * 128 + 3) * 4 + 2]);
  }
  EXPECT_EQ(file.tensors.at("blk.0.ssm_conv1d.weight").dims, (std::vector<uint64_t>{4, 1024}));
  EXPECT_EQ(file.tensors.at("blk.0.ffn_gate_inp_shexp.weight").dims, std::vector<uint64_t>{384});
  EXPECT_EQ(file.tensors.at("blk.0.ffn_down_exps.weight").dims,
            (std::vector<uint64_t>{128, 384, 16}));
}

TEST_F(Gguf, MetadataDescribesTheModelAndItsVocabulary) {
  export_minnow(folder_ / "minnow.gguf");
  const GgufFile file = GgufFile::read(folder_ / "minnow.gguf");
  EXPECT_EQ(file.texts.at("general.architecture"), "qwen35moe");
  EXPECT_EQ(file.numbers.at("qwen35moe.block_count"), 9);
  EXPECT_EQ(file.numbers.at("qwen35moe.nextn_predict_layers"), 1);
  EXPECT_EQ(file.numbers.at("qwen35moe.expert_used_count"), 4);
  EXPECT_EQ(file.numbers.at("qwen35moe.ssm.inner_size"), 512);
  EXPECT_EQ(file.numbers.at("qwen35moe.full_attention_interval"), 4);
  EXPECT_EQ(file.number_lists.at("qwen35moe.rope.dimension_sections"),
            (std::vector<int32_t>{11, 11, 10, 0}));
  EXPECT_EQ(file.texts.at("tokenizer.ggml.pre"), "qwen35");
  const Tokenizer tokenizer = Tokenizer::load(kMinnow).value();
  const std::vector<std::string>& tokens = file.text_lists.at("tokenizer.ggml.tokens");
  const std::vector<int32_t>& kinds = file.number_lists.at("tokenizer.ggml.token_type");
  ASSERT_EQ(tokens.size(), 8192u) << "as many as the embedding has rows";
  ASSERT_EQ(kinds.size(), 8192u);
  for (int32_t id = 0; id < 8192; ++id) {
    if (id >= tokenizer.vocab_size()) {
      EXPECT_EQ(kinds[size_t(id)], 5) << id;
      continue;
    }
    EXPECT_EQ(tokenizer.find(tokens[size_t(id)]), id);
    EXPECT_EQ(kinds[size_t(id)] == 3, tokenizer.is_special(id)) << id;
  }
  EXPECT_EQ(file.numbers.at("tokenizer.ggml.eos_token_id"), 8162);
  EXPECT_NE(file.texts.at("tokenizer.chat_template").find("<|im_start|>"), std::string::npos);
}

TEST_F(Gguf, WithoutMtpNoBlockIsAppended) {
  EXPECT_FALSE(export_minnow(folder_ / "plain.gguf", false).has_mtp);
  const GgufFile file = GgufFile::read(folder_ / "plain.gguf");
  EXPECT_EQ(file.numbers.at("qwen35moe.block_count"), 8);
  EXPECT_FALSE(file.tensors.contains("blk.8.attn_q.weight"));
}

TEST_F(Gguf, RandomWeightsOfAShape) {
  Result<GgufResult> result = export_gguf(
      {.model = {}, .shape = "qwen3.5-nano", .out = folder_ / "nano.gguf", .with_mtp = true},
      [](uint64_t, uint64_t) { return true; });
  ASSERT_TRUE(result.ok()) << result.failure().message;
  const GgufFile file = GgufFile::read(folder_ / "nano.gguf");
  EXPECT_TRUE(file.tensors.contains("token_embd.weight"));
}

TEST_F(Gguf, AnInterruptedRunLeavesNothing) {
  const Result<GgufResult> result =
      export_gguf({.model = kMinnow, .shape = "", .out = folder_ / "cut.gguf", .with_mtp = true},
                  [](uint64_t done, uint64_t total) { return done < total / 2; });
  ASSERT_FALSE(result.ok());
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(Gguf, RefusalsSayWhy) {
  const auto failure = [&](const GgufRequest& request) {
    const Result<GgufResult> result = export_gguf(request, [](uint64_t, uint64_t) { return true; });
    return result.ok() ? "" : result.failure().message;
  };
  std::ofstream(folder_ / "there.gguf") << "x";
  EXPECT_NE(failure({.model = kMinnow, .shape = "", .out = folder_ / "there.gguf"})
                .find("exists already"),
            std::string::npos);
  EXPECT_NE(failure({.model = {}, .shape = "qwen9", .out = folder_ / "a"}).find("qwen9"),
            std::string::npos);
  std::ofstream(folder_ / "config.json") << R"({"model_type": "llama"})";
  EXPECT_NE(failure({.model = folder_, .shape = "", .out = folder_ / "a"}).find("llama"),
            std::string::npos);
}

}  // namespace
}  // namespace slip
