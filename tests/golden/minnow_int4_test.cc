// models/minnow (int4, MTP in 16 bit) against its goldens. The reference computes in float32 and
// must give every logit; the fast backends round activations, to 16 bits, and must keep the
// distribution.
#include <cmath>

#include "base/json.h"
#include "tests/golden/compare.h"

namespace slip {
namespace {

const GoldenFile& goldens() {
  static const GoldenFile file(golden_folder() / "minnow/weights_int4.safetensors");
  return file;
}

Differences compare_prompts(LoadedModel& model, const std::vector<std::string>& prompts) {
  Differences differences;
  for (const std::string& name : prompts)
    differences.add(model.logits(prompt_ids(name)), goldens(), name + ".",
                    goldens().floats(name + ".router_gap"), 1e-4f);
  return differences;
}

// Both steps of the MTP layer over the prompt.
Differences compare_drafts(LoadedModel& model, const std::string& prompt) {
  const LoadedModel::Drafts drafts = model.drafts(prompt_ids(prompt));
  Differences differences;
  differences.add(drafts.step1, goldens(), prompt + ".mtp1_");
  differences.add(drafts.step2, goldens(), prompt + ".mtp2_");
  return differences;
}

double golden_nll(const std::string& sample, size_t windows) {
  const std::filesystem::path path = golden_folder() / "minnow/quality.json";
  const Json quality = parse_json(read_text_file(path).value(), path.string()).value();
  const Json& found = quality.at("weights").at("int4").at(sample).at("nll_by_window");
  double sum = 0;
  for (size_t i = 0; i < windows; ++i) sum += found.at(i).to_number<double>();
  return sum / double(windows);
}

double found_nll(LoadedModel& model, const std::string& sample, size_t windows, size_t tokens) {
  const std::vector<int32_t> ids =
      GoldenFile(golden_folder() / "minnow/samples.safetensors").ints(sample);
  double sum = 0;
  for (size_t i = 0; i < windows; ++i) sum += model.nll(std::span(ids).subspan(i * 1024, tokens));
  return sum / double(windows);
}

// Perplexities differ by this factor, less one.
double perplexity_change(double nll, double from) { return std::abs(std::expm1(nll - from)); }

TEST(MinnowInt4Reference, LogitsOfPrompts) {
  LoadedModel model(minnow_folder(), ref_backend());
  compare_prompts(model, {"story"}).expect_within(Arithmetic::float32);
}

TEST(MinnowInt4Reference, AllLogitsOfTheLastPosition) {
  LoadedModel model(minnow_folder(), ref_backend());
  const LogitRows found = model.logits(prompt_ids("story"));
  const std::vector<float> expected = goldens().floats("story.last_logits");
  Differences differences;
  for (size_t i = 0; i < expected.size(); ++i)
    differences.add(found.row(found.rows() - 1)[i] - expected[i]);
  differences.expect_within(Arithmetic::float32);
}

TEST(MinnowInt4Reference, GreedyContinuations) {
  LoadedModel model(minnow_folder(), ref_backend());
  for (const std::string name : {"story", "sum_think", "json", "code", "tool_call", "tool_answer"})
    expect_same_until_undecided(
        model.greedy(prompt_ids(name), prompt_ids(name).size() < 100 ? 64 : 4),
        goldens().ints(name + ".greedy_ids"), goldens().floats(name + ".greedy_margin"));
}

TEST(MinnowInt4Reference, Drafts) {
  LoadedModel model(minnow_folder(), ref_backend(), {.with_drafter = true});
  compare_drafts(model, "story").expect_within(Arithmetic::float32);
}

// Plain C++ takes ten times as long as the vector units, so it gets the shorter texts.
class MinnowInt4 : public ::testing::TestWithParam<Backend> {
 protected:
  bool slow() const { return GetParam().name == "cpu_portable"; }
};

TEST_P(MinnowInt4, LogitsOfPrompts) {
  LoadedModel model(minnow_folder(), GetParam());
  std::vector<std::string> prompts = {"story", "docs_page"};
  if (!slow()) prompts.insert(prompts.end(), {"tool_call", "needle_1500"});
  const Differences all = compare_prompts(model, prompts);
  all.expect_within(GetParam().name == "cuda" ? Arithmetic::f16_activations
                                              : Arithmetic::int16_activations);
  RecordProperty("differences", all.describe());
}

TEST_P(MinnowInt4, GreedyContinuations) {
  LoadedModel model(minnow_folder(), GetParam());
  std::vector<std::string> prompts = {"story", "sum_think", "json", "code"};
  if (!slow()) prompts.insert(prompts.end(), {"tool_call", "tool_answer"});
  for (const std::string& name : prompts)
    expect_same_until_undecided(model.greedy(prompt_ids(name), 64),
                                goldens().ints(name + ".greedy_ids"),
                                goldens().floats(name + ".greedy_margin"));
}

TEST_P(MinnowInt4, Drafts) {
  LoadedModel model(minnow_folder(), GetParam(), {.with_drafter = true});
  std::vector<std::string> prompts = {"story"};
  if (!slow()) prompts.insert(prompts.end(), {"docs_page", "tool_call"});
  for (const std::string& prompt : prompts) {
    const Differences drafts = compare_drafts(model, prompt);
    EXPECT_LE(drafts.rms(), 0.4) << prompt << ": " << drafts.describe();
    EXPECT_LE(drafts.percentile(0.99), 1.6) << prompt << ": " << drafts.describe();
  }
}

TEST_P(MinnowInt4, Perplexity) {
  LoadedModel model(minnow_folder(), GetParam());
  const size_t windows = slow() ? 1 : 2;
  EXPECT_LE(perplexity_change(found_nll(model, "docs", windows, 1024), golden_nll("docs", windows)),
            0.01);
  if (slow()) return;
  EXPECT_LE(perplexity_change(found_nll(model, "chat", windows, 1024), golden_nll("chat", windows)),
            0.01);
}

TEST_P(MinnowInt4, PerplexityIsThatOfTheReference) {
  LoadedModel model(minnow_folder(), GetParam());
  LoadedModel reference(minnow_folder(), ref_backend());
  EXPECT_LE(
      perplexity_change(found_nll(model, "docs", 1, 100), found_nll(reference, "docs", 1, 100)),
      0.005);
}

INSTANTIATE_TEST_SUITE_P(Backends, MinnowInt4, ::testing::ValuesIn(fast_backends()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace slip
