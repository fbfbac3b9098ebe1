// generation_config.json and the end tokens, in the forms they are published in.
#include "engine/generation_config.h"

#include "tests/checkpoint/test_files.h"
#include "tests/golden/golden_file.h"

namespace slip {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Result<GenerationDefaults> read(const char* generation, const char* config) {
  const TempFolder folder;
  folder.write("config.json", config);
  if (generation) folder.write("generation_config.json", generation);
  return read_generation_defaults(folder.path());
}

TEST(GenerationDefaults, ReadsMinnowsFile) {
  const GenerationDefaults defaults = read_generation_defaults(minnow_folder()).value();
  EXPECT_FLOAT_EQ(defaults.sampling.temperature, 0.7f);
  EXPECT_EQ(defaults.sampling.top_k, 20);
  EXPECT_FLOAT_EQ(defaults.sampling.top_p, 0.8f);
  EXPECT_THAT(defaults.stop_ids, ElementsAre(8162, 8160));
}

TEST(GenerationDefaults, ReadsEveryField) {
  const GenerationDefaults defaults =
      read(R"({"do_sample": true, "temperature": 0.6, "top_k": 40, "top_p": 0.95, "min_p": 0.05,
               "repetition_penalty": 1.1, "presence_penalty": 1.5, "eos_token_id": 5,
               "transformers_version": "5"})",
           "{}")
          .value();
  EXPECT_FLOAT_EQ(defaults.sampling.temperature, 0.6f);
  EXPECT_EQ(defaults.sampling.top_k, 40);
  EXPECT_FLOAT_EQ(defaults.sampling.top_p, 0.95f);
  EXPECT_FLOAT_EQ(defaults.sampling.min_p, 0.05f);
  EXPECT_FLOAT_EQ(defaults.sampling.repetition_penalty, 1.1f);
  EXPECT_FLOAT_EQ(defaults.sampling.presence_penalty, 1.5f);
  EXPECT_THAT(defaults.stop_ids, ElementsAre(5));
}

TEST(GenerationDefaults, SuppressedTokensAreOutOfReach) {
  const GenerationDefaults defaults = read(R"({"suppress_tokens": [1, 4]})", "{}").value();
  const std::vector<float> logits = {1.0f, 3.0f, 2.0f, -1.0f, 2.5f, 0.0f};
  std::vector<float> greedy = logits;
  EXPECT_EQ(Sampler(defaults.sampling, 6, 6).next(greedy), 2);
  EXPECT_EQ(greedy[1], -std::numeric_limits<float>::infinity());
  SamplingOptions random = defaults.sampling;
  random.temperature = 50;
  Sampler sampler(random, 6, 6);
  for (int i = 0; i < 500; ++i) {
    std::vector<float> copy = logits;
    EXPECT_THAT(sampler.next(copy), testing::AllOf(testing::Ne(1), testing::Ne(4)));
  }
  EXPECT_FALSE(read(R"({"suppress_tokens": ["a"]})", "{}").ok());
}

TEST(GenerationDefaults, WithoutAFileDecodesGreedily) {
  const GenerationDefaults defaults = read(nullptr, R"({"eos_token_id": 7})").value();
  EXPECT_TRUE(defaults.sampling.greedy());
  EXPECT_THAT(defaults.stop_ids, ElementsAre(7));
}

TEST(GenerationDefaults, SamplesOnlyIfTheFileSaysSo) {
  EXPECT_TRUE(read(R"({"temperature": 0.7})", "{}").value().sampling.greedy());
  EXPECT_TRUE(read(R"({"do_sample": false, "temperature": 0.7})", "{}").value().sampling.greedy());
  EXPECT_FLOAT_EQ(read(R"({"do_sample": true})", "{}").value().sampling.temperature, 1.0f);
}

TEST(GenerationDefaults, EndTokensAreTheUnionOfAllFiles) {
  const char* config = R"({"eos_token_id": 3, "text_config": {"eos_token_id": [4, 1]}})";
  EXPECT_THAT(read(R"({"eos_token_id": [1, 2]})", config).value().stop_ids,
              ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(read(R"({"eos_token_id": null})", R"({"eos_token_id": null})").value().stop_ids,
              IsEmpty());
}

TEST(GenerationDefaults, RefusesBrokenFiles) {
  expect_error(read(R"({"do_sample": true, "temperature": "hot"})", "{}"),
               {"generation_config.json", "temperature", "hot"});
  expect_error(read(R"({"eos_token_id": "end"})", "{}"),
               {"generation_config.json", "eos_token_id"});
  expect_error(read("[1]", "{}"), {"generation_config.json"});
  expect_error(read("{", "{}"), {"generation_config.json"});
  expect_error(read("{}", R"({"text_config": {"eos_token_id": -1}})"),
               {"config.json", "text_config.eos_token_id"});
  expect_error(read_generation_defaults("/nowhere"), {"/nowhere"});
}

TEST(GenerationDefaults, AFileThatLeadsNowhereIsNotAnAbsentOne) {
  const TempFolder folder;
  folder.write("config.json", "{}");
  const auto file = folder.path() / "generation_config.json";
  for (const char* target : {"generation_config.json", "blobs/absent"}) {
    std::filesystem::create_symlink(target, file);
    expect_error(read_generation_defaults(folder.path()), {"generation_config.json"});
    std::filesystem::remove(file);
  }
  EXPECT_TRUE(read_generation_defaults(folder.path()).ok());
}

TEST(GenerationDefaults, RefusesValuesThatAreNotSettings) {
  for (const char* setting :
       {R"("temperature": -0.5)", R"("top_p": 1.5)", R"("top_p": -1)", R"("min_p": 2)",
        R"("top_k": -1)", R"("repetition_penalty": 0)", R"("repetition_penalty": -2)"}) {
    const std::string json = std::string(R"({"do_sample": true, )") + setting + "}";
    EXPECT_FALSE(read(json.c_str(), "{}").ok()) << setting;
  }
}

}  // namespace
}  // namespace slip
