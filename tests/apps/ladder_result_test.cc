#include "slipstream/bench/ladder_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slipstream/bench/ladder_table.h"

namespace slip {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

struct Drafted {
  int64_t steps;
  std::vector<int64_t> judged_at, accepted_at;
};

TestRun run_of(int64_t tokens, double seconds, const Drafted& drafted) {
  TestRun run{.tokens = tokens, .seconds = seconds, .drafts = {}, .bytes_per_step = 1e9};
  run.drafts.steps = drafted.steps;
  run.drafts.judged_at = drafted.judged_at;
  run.drafts.accepted_at = drafted.accepted_at;
  return run;
}

// A baseline of 10 and 30 tokens per second, a skipped rung, and one twice as fast as the baseline.
std::vector<RungResult> some_rungs() {
  RungResult baseline{.name = "baseline"};
  // The first run is slow and does not count.
  baseline.tests = {
      {.name = "a", .runs = {run_of(10, 9, {10, {}, {}}), run_of(10, 1, {10, {}, {}})}},
      {.name = "b", .runs = {run_of(30, 1, {30, {}, {}})}}};
  const RungResult skipped{.name = "nothing", .skipped = "no such layer"};
  RungResult fast{.name = "fast"};
  fast.tests = {{.name = "a", .runs = {run_of(20, 1, {10, {10, 6}, {9, 1}})}},
                {.name = "b", .runs = {run_of(60, 1, {20, {30}, {23}})}}};
  RungResult slower{.name = "slower"};
  slower.tests = {{.name = "a", .runs = {run_of(30, 1, {15, {0}, {0}})}},
                  {.name = "b", .runs = {run_of(30, 1, {15, {0}, {0}})}}};
  return {baseline, skipped, fast, slower};
}

TEST(LadderResult, FiguresAreMeansOverTheTestsOfTheLastRun) {
  std::vector<RungResult> rungs = some_rungs();
  summarize(rungs, 100e9);
  EXPECT_DOUBLE_EQ(rungs[0].tokens_per_second, 20);
  EXPECT_DOUBLE_EQ(rungs[0].steps_per_second, 20);
  EXPECT_DOUBLE_EQ(rungs[0].tokens_per_step, 1);
  EXPECT_DOUBLE_EQ(rungs[0].bytes_per_second, 20e9);
  EXPECT_DOUBLE_EQ(rungs[0].share_of_bandwidth, 0.2);
  EXPECT_TRUE(rungs[0].acceptance.empty());
  EXPECT_DOUBLE_EQ(rungs[2].steps_per_second, 15);
  EXPECT_DOUBLE_EQ(rungs[2].tokens_per_step, 2.5);
}

TEST(LadderResult, AcceptanceIsThatOfAllJudgedDrafts) {
  std::vector<RungResult> rungs = some_rungs();
  summarize(rungs, 1);
  EXPECT_THAT(rungs[2].acceptance,
              ElementsAre(DoubleNear(32.0 / 40, 1e-12), DoubleNear(1.0 / 6, 1e-12)));
  EXPECT_TRUE(rungs[3].acceptance.empty());  // drafts that nobody judged
}

TEST(LadderResult, GainsStepOverSkippedRungs) {
  std::vector<RungResult> rungs = some_rungs();
  summarize(rungs, 1);
  EXPECT_DOUBLE_EQ(rungs[0].gain_over_previous, 1);
  EXPECT_DOUBLE_EQ(rungs[0].gain_over_baseline, 1);
  EXPECT_DOUBLE_EQ(rungs[2].gain_over_previous, 2);
  EXPECT_DOUBLE_EQ(rungs[2].gain_over_baseline, 2);
  EXPECT_DOUBLE_EQ(rungs[3].gain_over_previous, 0.75);
  EXPECT_DOUBLE_EQ(rungs[3].gain_over_baseline, 1.5);
}

TEST(LadderResult, JsonKeepsBothRunsAndSetsSkippedRungsApart) {
  std::vector<RungResult> rungs = some_rungs();
  summarize(rungs, 1e9);
  const JsonObject object = ladder_json(rungs, true);
  EXPECT_TRUE(object.at("simulated").as_bool());
  const JsonArray& steps = object.at("steps").as_array();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].at("name").as_string(), "fast");
  EXPECT_TRUE(steps[1].at("simulated").as_bool());
  const JsonObject& test = steps[0].at("tests").at(0).as_object();
  EXPECT_EQ(test.at("runs").as_array().size(), 2u);
  EXPECT_DOUBLE_EQ(test.at("tokens_per_second").as_double(), 10);
  ASSERT_EQ(object.at("skipped").as_array().size(), 1u);
  EXPECT_EQ(object.at("skipped").at(0).at("reason").as_string(), "no such layer");
}

TEST(LadderTable, HasALinePerRungAndSaysWhatIsSimulated) {
  std::vector<RungResult> rungs = some_rungs();
  summarize(rungs, 100e9);
  const std::string plain = ladder_table(rungs, TableStyle::plain, false);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), '\n'), 5);
  EXPECT_THAT(plain, HasSubstr("nothing   skipped: no such layer\n"));
  EXPECT_THAT(plain, HasSubstr("80 17"));
  EXPECT_THAT(plain, HasSubstr("2.00x"));
  EXPECT_THAT(plain, testing::Not(HasSubstr("simulated")));
  const std::string markdown = ladder_table(rungs, TableStyle::markdown, true);
  // The skipped rung has no figures to label.
  size_t labels = 0;
  for (size_t at = 0; (at = markdown.find("(simulated)", at)) != std::string::npos; ++at) ++labels;
  EXPECT_EQ(labels, 3u);
  EXPECT_EQ(std::count(markdown.begin(), markdown.end(), '|'), 6 * 11);
}

TEST(LadderTable, GainsAreMultiples) {
  EXPECT_EQ(describe_gain(1), "1.00x");
  EXPECT_EQ(describe_gain(1.518), "1.52x");
}

}  // namespace
}  // namespace slip
