// bench ladder, with answers too short to mean anything but quick to make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/e2e/process.h"

namespace slip::e2e {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kQuick = {"bench", "ladder",    "minnow", "--max-tokens",
                                         "24",    "--seconds", "0.01"};

std::vector<std::string> quick(const std::vector<std::string>& more) {
  std::vector<std::string> words = kQuick;
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(Ladder, PrintsTheContractsObjectAndDrawsTheChart) {
  const TemporaryFolder folder;
  const std::string svg = (folder.path() / "ladder.svg").string();
  const JsonObject object = run(quick({"--json", "--svg", svg})).json();
  EXPECT_FALSE(object.at("simulated").as_bool());
  EXPECT_TRUE(object.at("texts_identical").as_bool());
  EXPECT_GT(object.at("machine").at("read_bandwidth_gb_per_s").to_number<double>(), 0.1);
  EXPECT_TRUE(object.at("skipped").as_array().empty());

  const JsonArray& steps = object.at("steps").as_array();
  std::vector<std::string> names;
  for (const Json& step : steps) names.emplace_back(step.at("name").as_string());
  ASSERT_THAT(names,
              testing::ElementsAre("int4 baseline", "+ fp8 shared experts", "+ MTP-1", "+ MTP-2",
                                   "+ int8 head", "+ drafts as they pay", "+ int8 shared experts",
                                   "+ 8-bit activations", "+ TurboQuant k4v4"));
  for (const Json& step : steps) {
    for (const char* key :
         {"tokens_per_second", "steps_per_second", "tokens_per_step", "bytes_per_step", "gb_per_s",
          "share_of_bandwidth", "gain_over_previous", "gain_over_baseline"})
      EXPECT_GT(step.at(key).to_number<double>(), 0) << key;
    ASSERT_EQ(step.at("tests").as_array().size(), 5u);
    for (const Json& test : step.at("tests").as_array())
      EXPECT_EQ(test.at("runs").as_array().size(), 2u);
  }
  const auto figure = [&](size_t step, const char* key) {
    return steps[step].at(key).to_number<double>();
  };
  EXPECT_EQ(figure(0, "tokens_per_step"), 1);
  EXPECT_EQ(figure(0, "gain_over_baseline"), 1);
  EXPECT_LT(figure(1, "bytes_per_step"), figure(0, "bytes_per_step"));
  EXPECT_EQ(steps[1].at("acceptance").as_array().size(), 0u);
  EXPECT_EQ(steps[2].at("acceptance").as_array().size(), 1u);
  EXPECT_EQ(steps[3].at("acceptance").as_array().size(), 2u);
  EXPECT_GT(figure(2, "tokens_per_step"), 1.5);
  EXPECT_GT(figure(3, "tokens_per_step"), figure(2, "tokens_per_step"));
  EXPECT_LT(figure(4, "bytes_per_step"), figure(3, "bytes_per_step"));

  const Result<std::string> drawn = read_text_file(svg);
  ASSERT_TRUE(drawn.ok());
  EXPECT_THAT(drawn.value(), HasSubstr("+ TurboQuant k4v4"));
}

TEST(Ladder, TakesOtherPromptsAndShowsATableWithBars) {
  const TemporaryFolder folder;
  const std::string prompts = folder.write(
      "prompts.json",
      R"([{"name": "Capital", "prompt": "What is the capital of France?", "max_tokens": 20}])");
  const Finished done = run(quick({"--prompts", prompts}));
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.err, "");  // progress is for terminals
  for (const char* part : {"tok/s", "% bandwidth", "█", "+ MTP-2", "drafts changed no text"})
    EXPECT_THAT(done.out, HasSubstr(part));
  const Finished markdown = run(quick({"--prompts", prompts, "--output", "md"}));
  EXPECT_THAT(markdown.out, testing::StartsWith("| step "));
}

TEST(Ladder, SimulatedFiguresSaySo) {
  const JsonObject object = run(quick({"--simulate-acceptance", "1", "--json"})).json();
  EXPECT_TRUE(object.at("simulated").as_bool());
  EXPECT_FALSE(object.contains("texts_identical"));
  for (const Json& step : object.at("steps").as_array()) {
    EXPECT_TRUE(step.at("simulated").as_bool());
    for (const Json& share : step.at("acceptance").as_array()) EXPECT_EQ(share.as_double(), 1);
  }
}

TEST(Ladder, SkipsWhatTheModelDoesNotHave) {
  const TemporaryFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(SLIP_SOURCE_DIR "/models/minnow"))
    if (entry.path().filename() != "model_extra_tensors.safetensors")
      std::filesystem::create_symlink(entry.path(), folder.path() / entry.path().filename());
  const JsonObject object = run({"bench", "ladder", folder.path().string(), "--max-tokens", "8",
                                 "--seconds", "0", "--json"})
                                .json();
  EXPECT_EQ(object.at("steps").as_array().size(), 6u);
  ASSERT_EQ(object.at("skipped").as_array().size(), 3u);
  for (const Json& step : object.at("skipped").as_array())
    EXPECT_THAT(std::string(step.at("reason").as_string()), HasSubstr("no usable MTP layer"));
}

TEST(Ladder, RefusalsSayWhatToDo) {
  const Finished synthetic = run({"bench", "ladder", "qwen3.5-35b-a3b", "--synthetic"});
  EXPECT_EQ(synthetic.status, 2);
  EXPECT_THAT(synthetic.err, HasSubstr("--simulate-acceptance 0.8"));
  EXPECT_EQ(run(quick({"--simulate-acceptance", "1.5"})).status, 2);
  EXPECT_EQ(run({"bench", "ladder", "--max-tokens", "1"}).status, 2);
  EXPECT_EQ(run({"bench", "ladder", "--kv-cache", "int8"}).status, 2);  // the ladder chooses
  EXPECT_THAT(run(quick({"--prompts", "/no/such.json"})).err, HasSubstr("/no/such.json"));
}

TEST(Ladder, IsAVerbBesideBench) {
  EXPECT_THAT(run({"bench", "ladder", "--help"}).out, HasSubstr("Usage: slipstream bench ladder"));
  const Finished offered = shell(
      "source <(\"$SLIP\" completions bash); cd /\n"
      "COMP_WORDS=(slipstream bench lad) COMP_CWORD=2; _slipstream; echo \"${COMPREPLY[@]}\"\n"
      "COMP_WORDS=(slipstream bench --rep) COMP_CWORD=2; _slipstream; echo \"${COMPREPLY[@]}\"\n"
      "COMP_WORDS=(slipstream bench DIR --rep) COMP_CWORD=3; _slipstream; echo "
      "\"${COMPREPLY[@]}\"\n"
      "COMP_WORDS=(slipstream bench ladder --sv) COMP_CWORD=3; _slipstream; "
      "echo \"${COMPREPLY[@]}\"");
  EXPECT_EQ(offered.out, "ladder\n--repeat\n--repeat\n--svg\n") << offered.err;
}

}  // namespace
}  // namespace slip::e2e
