#include "convert/check_folder.h"

#include "tests/convert/converted.h"

namespace slip {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class CheckFolder : public ::testing::Test {
 protected:
  CheckFolder() : pool_(2), ops_(make_cpu_ops(pool_)) {}

  FolderReport check(const fs::path& folder, bool deep = false) {
    FolderReport report = check_folder(folder, *ops_);
    if (deep) {
      EXPECT_TRUE(check_numbers(folder, pool_, report, kNoProgress).ok());
    }
    return report;
  }
  fs::path broken() { return copy_model(minnow_folder(), temp_, "broken"); }
  void expect_problem(const FolderReport& report, std::initializer_list<std::string> parts) {
    ASSERT_FALSE(report.good());
    for (const std::string& part : parts) EXPECT_THAT(report.problems.front(), HasSubstr(part));
  }

  TempFolder temp_;
  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
};

const std::string kScales = "model.language_model.layers.3.self_attn.q_proj.scales";

TEST_F(CheckFolder, MinnowIsGood) {
  const FolderReport report = check(minnow_folder(), true);
  EXPECT_TRUE(report.good());
  EXPECT_TRUE(report.has_mtp);
  EXPECT_EQ(report.family, "qwen3_5_moe");
  EXPECT_EQ(report.layers, 8);
  EXPECT_EQ(report.tensors, 1394);
  EXPECT_EQ(report.files, 3);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_THAT(report.notes.front(), HasSubstr("not in the index"));
}

TEST_F(CheckFolder, TruncatedFile) {
  const fs::path folder = broken();
  fs::resize_file(folder / "model-00002-of-00002.safetensors", 9'000'000);
  expect_problem(check(folder), {"model-00002-of-00002.safetensors", "9000000"});
}

TEST_F(CheckFolder, MissingFile) {
  const fs::path folder = broken();
  fs::remove(folder / "model-00001-of-00002.safetensors");
  expect_problem(check(folder), {"model-00001-of-00002.safetensors", "missing"});
}

TEST_F(CheckFolder, MissingAndUnknownTensors) {
  const fs::path folder = temp_.path() / "tiny";
  fs::create_directories(folder);
  fs::copy(tiny_folder("qwen3_5_moe") / "config.json", folder / "config.json");
  const Checkpoint whole = Checkpoint::open(tiny_folder("qwen3_5_moe")).value();
  const auto write = [&](const std::string& without, const std::string& as) {
    std::vector<TensorToWrite> tensors;
    for (const StoredTensor& tensor : whole.tensors())
      if (tensor.name != without || !as.empty())
        tensors.push_back(
            {tensor.name == without ? as : tensor.name, tensor.type, tensor.shape, tensor.data});
    ASSERT_TRUE(write_safetensors(folder / "model.safetensors", tensors, "pt").ok());
  };
  write("model.norm.weight", "");
  expect_problem(check(folder), {"model.norm.weight"});
  write("model.layers.0.linear_attn.in_proj_z.weight", "");
  expect_problem(check(folder), {"model.layers.0.linear_attn.in_proj_z"});
  write("", "");
  EXPECT_TRUE(check(folder).good());
  // Nobody asks for it: another architecture, perhaps.
  std::vector<TensorToWrite> more;
  for (const StoredTensor& tensor : whole.tensors())
    more.push_back({tensor.name, tensor.type, tensor.shape, tensor.data});
  more.push_back({"model.layers.0.mlp.extra.weight",
                  StoredType::bf16,
                  {32},
                  whole.find("model.norm.weight")->data});
  ASSERT_TRUE(write_safetensors(folder / "model.safetensors", more, "pt").ok());
  expect_problem(check(folder), {"model.layers.0.mlp.extra.weight"});
}

TEST_F(CheckFolder, SwappedShapes) {
  const fs::path folder = temp_.path() / "tiny";
  fs::create_directories(folder);
  fs::copy(tiny_folder("qwen3_5_moe") / "config.json", folder / "config.json");
  const Checkpoint whole = Checkpoint::open(tiny_folder("qwen3_5_moe")).value();
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : whole.tensors()) {
    std::vector<int64_t> shape = tensor.shape;
    if (tensor.name == "model.layers.0.linear_attn.out_proj.weight") std::swap(shape[0], shape[1]);
    tensors.push_back({tensor.name, tensor.type, shape, tensor.data});
  }
  ASSERT_TRUE(write_safetensors(folder / "model.safetensors", tensors, "pt").ok());
  expect_problem(check(folder), {"model.layers.0.linear_attn.out_proj", "[1024, 32]"});
}

TEST_F(CheckFolder, NumbersAreReadWhenAskedFor) {
  const fs::path folder = broken();
  overwrite(folder, kScales, 20, std::string("\x00\x7c", 2));  // f16 infinity
  EXPECT_TRUE(check(folder).good());
  expect_problem(check(folder, true), {kScales, "value 10", "NaN"});
  overwrite(folder, kScales, 20, std::string("\x00\x00", 2));
  overwrite(folder, "model.language_model.layers.3.self_attn.q_proj.qzeros", 4, "\x66");
  expect_problem(check(folder, true), {"q_proj.qzeros", "zero points"});
}

TEST_F(CheckFolder, ConfigMustFitTheFiles) {
  const fs::path folder = copy_model(tiny_folder("qwen3_5_moe"), temp_, "tiny");
  JsonObject config = json_of(folder / "config.json").get_object();
  config["quantization_config"] = JsonObject{{"quant_method", "fp8"}};
  temp_.write("tiny/config.json", dump_json(config));
  expect_problem(check(folder), {"quant_method fp8", "no FP8 matrix"});
  temp_.write("tiny/config.json", "{");
  expect_problem(check(folder), {"config.json"});
}

TEST_F(CheckFolder, NotesWhatOthersWillMiss) {
  const fs::path folder = broken();
  JsonObject config = json_of(folder / "config.json").get_object();
  config.erase("quantization_config");
  temp_.write("broken/config.json", dump_json(config));
  fs::remove(folder / "tokenizer.json");
  const FolderReport report = check(folder);
  EXPECT_TRUE(report.good());
  EXPECT_THAT(report.notes, ::testing::UnorderedElementsAre(HasSubstr("no quantization_config"),
                                                            HasSubstr("tokenizer.json is missing"),
                                                            HasSubstr("not in the index")));
}

}  // namespace
}  // namespace slip
