// The verbs that measure quality, as a user runs them: eval accept, eval kl, eval needle.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "tests/e2e/process.h"

namespace slip::e2e {
namespace {

using ::testing::HasSubstr;

class QualityVerbs : public ::testing::Test {
 protected:
  // Minnow's own greedy text, as the goldens have it: a prompt and 64 tokens.
  std::string story_ids() const {
    const std::string path = SLIP_SOURCE_DIR "/tests/data/golden/minnow/prompts.json";
    const Json prompts = parse_json(read_text_file(path).value(), path).value();
    JsonArray ids;
    for (const char* part : {"ids", "greedy_ids"})
      for (const Json& id : prompts.at(0).at(part).as_array()) ids.push_back(id);
    return folder_.write("story.json", dump_json(JsonArray{ids, ids}));
  }
  static double number(const Json& json, const char* key) {
    return json.at(key).to_number<double>();
  }

  TemporaryFolder folder_;
};

TEST_F(QualityVerbs, AcceptCountsDraftsPerPlace) {
  const std::string ids = story_ids();
  const Finished done = run({"eval", "accept", "--ids", ids, "--drafts", "3", "--json"});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.err, "") << "progress is for terminals";
  const JsonObject report = done.json();
  const JsonArray& places = report.at("drafts").as_array();
  ASSERT_EQ(places.size(), 3u);
  EXPECT_EQ(places[0].at("judged").as_int64(), report.at("tokens").as_int64() - 2)
      << "two lists, a slot less than tokens in each";
  double chance = 1, tokens = 1, before = number(places[0], "judged");
  for (const Json& place : places) {
    EXPECT_LE(number(place, "judged"), before);
    EXPECT_GT(number(place, "share"), 0.6);
    EXPECT_NEAR(number(place, "share"), number(place, "agreed") / number(place, "judged"), 1e-12);
    tokens += chance *= number(place, "share");
    EXPECT_NEAR(number(place, "tokens_per_step"), tokens, 1e-12);
    before = number(place, "judged");
  }
}

TEST_F(QualityVerbs, AcceptSeesTheDrafterAndTheWindow) {
  const std::string ids = story_ids();
  const auto first_place = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"eval", "accept", "--ids", ids, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished done = run(arguments);
    EXPECT_EQ(done.status, 0) << done.err;
    return done.json().at("drafts").at(0);
  };
  const Json all = first_place({}), few = first_place({"--draft-shortlist", "300"});
  EXPECT_EQ(all.at("judged"), few.at("judged"));
  EXPECT_GT(number(all, "agreed"), number(few, "agreed")) << "rare tokens cannot be drafted";
  const int64_t tokens = all.at("judged").as_int64() / 2 + 1, windows = (tokens + 9) / 10;
  EXPECT_EQ(first_place({"--window", "10"}).at("judged").as_int64(), 2 * (tokens - windows))
      << "a slot less than tokens in each window";
}

TEST_F(QualityVerbs, AcceptReadsText) {
  const std::string text = folder_.write("a.txt", "Once upon a time, a fox named Ida lived here.");
  const Finished done = run({"eval", "accept", "--text", text});
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("tokens per step"));
  EXPECT_THAT(run({"eval", "accept"}).err, HasSubstr("--ids"));
  EXPECT_THAT(run({"eval", "accept", "--text", text, "--drafts", "9"}).err, HasSubstr("--drafts"));
  const std::string short_text = folder_.write("b.txt", "a");
  EXPECT_THAT(run({"eval", "accept", "--text", short_text}).err, HasSubstr("two tokens"));
}

TEST_F(QualityVerbs, KlIsNothingAgainstItself) {
  const std::string ids = story_ids();
  const Finished same = run({"eval", "kl", "--ids", ids, "--json"});
  ASSERT_EQ(same.status, 0) << same.err;
  const JsonObject report = same.json();
  EXPECT_EQ(number(report, "mean_kl"), 0);
  EXPECT_EQ(number(report, "kl_99th_percentile"), 0);
  EXPECT_EQ(number(report, "top1_agreement"), 1);
  EXPECT_EQ(number(report, "perplexity"), number(report, "reference_perplexity"));
  EXPECT_EQ(number(report, "positions"), number(report, "predicted") + 2);
  const Finished ppl = run({"eval", "ppl", "--ids", ids, "--json"});
  EXPECT_EQ(number(ppl.json(), "perplexity"), number(report, "perplexity"));
}

TEST_F(QualityVerbs, KlSeesCoarserCachesAndWeights) {
  const std::string ids = story_ids();
  const auto mean_kl = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"eval", "kl", "--ids", ids, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished done = run(arguments);
    EXPECT_EQ(done.status, 0) << done.err;
    return number(done.json(), "mean_kl");
  };
  const double bf16 = mean_kl({"--kv-cache", "bf16"});
  const double head = mean_kl({"--head", "int8"});
  EXPECT_GT(bf16, 0);
  EXPECT_LT(bf16, 0.001);
  EXPECT_GT(head, 0);
  EXPECT_LT(head, 0.001);
  EXPECT_EQ(mean_kl({"--kv-cache", "bf16", "--against", "bf16"}), 0);
}

TEST_F(QualityVerbs, KlNeedsModelsOfOneVocabulary) {
  const std::string ids = folder_.write("ids.json", "[1, 2, 3]");
  const Finished other = run({"eval", "kl", "--ids", ids, "--reference-model",
                              SLIP_SOURCE_DIR "/tests/data/golden/tiny/qwen3_5_moe"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("vocabulary"));
}

TEST_F(QualityVerbs, NeedlesAreFoundInShortTexts) {
  const std::vector<std::string> arguments{"eval",     "needle", "--lengths", "128,200",
                                           "--depths", "2",      "--seed",    "5",
                                           "--trials", "2",      "--json"};
  const Finished done = run(arguments);
  ASSERT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.err, "");
  JsonObject report = done.json();
  EXPECT_EQ(report.at("asked").as_int64(), 8);
  EXPECT_GE(report.at("found").as_int64(), 7) << done.out;
  ASSERT_EQ(report.at("cells").as_array().size(), 4u);
  EXPECT_EQ(number(report.at("cells").at(3), "depth"), 1);
  EXPECT_EQ(number(report.at("cells").at(3), "length"), 200);
  JsonObject again = run(arguments).json();
  report.erase("seconds");
  again.erase("seconds");
  EXPECT_EQ(report, again);
}

TEST_F(QualityVerbs, NeedlesAreShownInAGrid) {
  const Finished grid = run({"eval", "needle", "--lengths", "100", "--depths", "3"});
  ASSERT_EQ(grid.status, 0) << grid.err;
  EXPECT_THAT(grid.out, HasSubstr("50 %"));
  EXPECT_THAT(grid.out, HasSubstr("of 3 with keys and values as f32"));
  EXPECT_THAT(run({"eval", "needle", "--lengths", "10"}).err, HasSubstr("10 tokens"));
  EXPECT_THAT(run({"eval", "needle", "--lengths", "abc"}).err, HasSubstr("--lengths"));
}

}  // namespace
}  // namespace slip::e2e
