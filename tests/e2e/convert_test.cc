// slipstream convert as a person types it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/e2e/process.h"

namespace slip::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const std::string kMinnow = std::string(SLIP_SOURCE_DIR) + "/models/minnow";
const std::string kTiny = std::string(SLIP_SOURCE_DIR) + "/tests/data/golden/tiny/qwen3_5_moe";

TEST(ConvertVerbs, CheckHasAVerdict) {
  const Finished good = run({"convert", "check", kMinnow, "--deep"});
  EXPECT_EQ(good.status, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("good: "));
  EXPECT_THAT(good.out, HasSubstr("1,394 tensors"));

  const TemporaryFolder folder;
  const fs::path broken = folder.path() / "broken";
  fs::copy(kMinnow, broken, fs::copy_options::recursive);
  fs::resize_file(broken / "model-00001-of-00002.safetensors", 1'000'000);
  const Finished bad = run({"convert", "check", broken.string()});
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.out, HasSubstr("problem: "));
  EXPECT_THAT(bad.out, HasSubstr("model-00001-of-00002.safetensors"));
  EXPECT_THAT(bad.out, HasSubstr("BROKEN: "));
  EXPECT_TRUE(run({"convert", "check", kMinnow, "--json"}).json().at("good").as_bool());
}

TEST(ConvertVerbs, FromSixteenBitsToAHybrid) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const Finished int4 =
      run({"convert", "int4", "--model", kTiny, "--out", path("int4"), "--group-size", "32"});
  ASSERT_EQ(int4.status, 0) << int4.err;
  EXPECT_EQ(int4.out, path("int4") + "\n");
  EXPECT_THAT(int4.err, HasSubstr("routed experts"));
  const JsonObject fp8 =
      run({"convert", "fp8", "--model", kTiny, "--out", path("fp8"), "--json"}).json();
  EXPECT_EQ(fp8.at("folder").as_string(), path("fp8"));
  EXPECT_GT(fp8.at("written_bytes").to_number<int64_t>(), 0);
  EXPECT_FALSE(fp8.at("was_there").as_bool());
  const std::vector<std::string> hybrid = {"convert", "hybrid",    "--int4", path("int4"),
                                           "--fp8",   path("fp8"), "--out",  path("hybrid")};
  std::vector<std::string> dry = hybrid;
  dry.push_back("--dry-run");
  const Finished planned = run(dry);
  EXPECT_EQ(planned.status, 0) << planned.err;
  EXPECT_THAT(planned.err, HasSubstr("matrices become FP8"));
  EXPECT_FALSE(fs::exists(path("hybrid")));
  ASSERT_EQ(run(hybrid).status, 0);
  EXPECT_THAT(run(hybrid).err, HasSubstr("nothing needs doing"));
  std::vector<std::string> again = hybrid;
  again.push_back("--json");
  EXPECT_TRUE(run(again).json().at("was_there").as_bool());
  EXPECT_EQ(run({"convert", "check", path("hybrid"), "--deep"}).status, 0);
  const JsonObject gguf =
      run({"convert", "gguf", kMinnow, "--out", path("model.gguf"), "--json"}).json();
  EXPECT_EQ(gguf.at("file").as_string(), path("model.gguf"));
  const JsonObject mtp = run({"convert", "mtp", "--to", kMinnow, "--dry-run", "--json"}).json();
  EXPECT_EQ(mtp.at("done").as_string(), "registered");
}

// A calibration takes long: what makes it needless or impossible is found before.
TEST(ConvertVerbs, CalibrationLooksAtItsFolderFirst) {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder.path() / name).string(); };
  const std::string model = path("tiny");
  fs::copy(kTiny, model);
  folder.write("tiny/tokenizer.json",
               R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2}, "merges": []},
                   "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false,
                                     "use_regex": false}, "decoder": {"type": "ByteLevel"}})");
  std::string letters;
  for (int i = 0; i < 400; ++i) letters += "abc"[i * i % 7 % 3];
  const std::string text = folder.write("text", letters);
  std::vector<std::string> command = {"convert",         "int4",       "-m",           model,
                                      "--out",           path("int4"), "--group-size", "32",
                                      "--calibrate",     text,         "--samples",    "2",
                                      "--sample-length", "64",         "--report",     text};
  const Finished first = run(command);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("calibrating with 2 samples, 128 tokens"));
  EXPECT_THAT(first.err, HasSubstr("same first choice"));
  command.insert(command.end(), {"-q", "--json"});
  const Finished again = run(command);
  EXPECT_TRUE(again.json().at("was_there").as_bool());
  EXPECT_GT(again.json().at("report").at("perplexity").to_number<double>(), 1);
  EXPECT_EQ(again.err.find("calibrating"), std::string::npos);
  EXPECT_THAT(again.err, HasSubstr("same first choice"));
  EXPECT_FALSE(fs::exists(folder.path() / ".int4.calibration.partial"));
  command[5] = folder.path().string();
  const Finished foreign = run(command);
  EXPECT_EQ(foreign.status, 1);
  EXPECT_THAT(foreign.err, HasSubstr("is there already"));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--sample-length", "0"}, {"--samples", "-1"}}) {
    std::vector<std::string> line = {"convert", "int4", "-m", model, "--out", path("x")};
    line.insert(line.end(), wrong.begin(), wrong.end());
    EXPECT_EQ(run(line).status, 2);
  }
}

TEST(ConvertVerbs, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string();
  EXPECT_THAT(run({"convert", "hybrid", "--out", out}).err, HasSubstr("--int4, --fp8 and --out"));
  EXPECT_THAT(run({"convert", "int4", "-m", kTiny, "--out", out, "--class", "heads=int4"}).err,
              HasSubstr("no class \"heads\""));
  EXPECT_THAT(run({"convert", "int4", "-m", kMinnow, "--out", out}).err,
              HasSubstr("quantized already"));
  EXPECT_THAT(run({"convert", "mtp", "--to", kTiny}).err, HasSubstr("holds no MTP tensors"));
  const Finished no_int4 =
      run({"convert", "hybrid", "--int4", kTiny, "--fp8", kTiny, "--out", out, "--json"});
  EXPECT_EQ(no_int4.status, 1);
  EXPECT_EQ(no_int4.out, "");
  EXPECT_THAT(no_int4.err, HasSubstr("expected an INT4 checkpoint"));
  const Finished nothing =
      run({"convert", "hybrid", "--int4", kMinnow, "--fp8", kMinnow, "--out", out, "--json"});
  EXPECT_EQ(nothing.status, 1);
  EXPECT_THAT(nothing.err, HasSubstr("no 16-bit matrix of shared experts is FP8 in "));
  // The text of a report is read before anything is written.
  const Finished report =
      run({"convert", "int4", "-m", kTiny, "--out", out, "--report", "/no/such/text"});
  EXPECT_EQ(report.status, 1);
  EXPECT_FALSE(fs::exists(out));
}

}  // namespace
}  // namespace slip::e2e
