// The other forms of minnow, which lie beside the repository: bf16, fp8 and the hybrid.
#include <cmath>

#include "checkpoint/checkpoint.h"
#include "tests/checkpoint/test_files.h"
#include "tests/golden/compare.h"

namespace slip {
namespace {

std::filesystem::path shared_minnow(const char* form) { return shared_folder() / "minnow" / form; }
std::filesystem::path shared_golden(const std::string& name) {
  return shared_folder() / "goldens/minnow" / (name + ".safetensors");
}

// The fast one; the others are tested on the repository's own files.
Backend best_backend() { return fast_backends().front(); }

TEST(MinnowBf16, LogitsOfEveryPrompt) {
  SLIP_SKIP_WITHOUT_SHARED();
  LoadedModel model(shared_minnow("bf16"), best_backend());
  for (const std::string& name : prompt_names()) {
    const GoldenFile golden(shared_golden(name));
    const LogitRows found = model.logits(golden.ints("ids"));
    const std::vector<float> gaps = golden.floats("router_gap");
    Differences differences;
    differences.add(found, golden, "", gaps, 1e-4f);
    const std::vector<float> sums = golden.floats("logsumexp");
    for (size_t row = 0; row < sums.size(); ++row)
      if (gaps[row] > 1e-4f)
        differences.add(float(log_sum_exp(found.row(int64_t(row)))) - sums[row]);
    SCOPED_TRACE(name);
    differences.expect_within(Arithmetic::float32);
  }
}

TEST(MinnowBf16, ReferenceLogits) {
  SLIP_SKIP_WITHOUT_SHARED();
  LoadedModel model(shared_minnow("bf16"), ref_backend());
  const GoldenFile golden(shared_golden("json"));
  Differences differences;
  differences.add(model.logits(golden.ints("ids")), golden, "", golden.floats("router_gap"), 1e-4f);
  differences.expect_within(Arithmetic::float32);
}

TEST(MinnowBf16, GreedyContinuations) {
  SLIP_SKIP_WITHOUT_SHARED();
  LoadedModel model(shared_minnow("bf16"), best_backend());
  for (const std::string& name : prompt_names()) {
    SCOPED_TRACE(name);
    const GoldenFile golden(shared_golden(name));
    expect_same_until_undecided(model.greedy(golden.ints("ids"), 64), golden.ints("greedy_ids"),
                                golden.floats("greedy_margin"), golden.floats("greedy_router_gap"));
  }
}

TEST(MinnowBf16, NegativeLogLikelihoodOfSamples) {
  SLIP_SKIP_WITHOUT_SHARED();
  LoadedModel model(shared_minnow("bf16"), best_backend());
  for (const std::string sample : {"docs", "chat"}) {
    const std::vector<int32_t> ids =
        GoldenFile(golden_folder() / "minnow/samples.safetensors").ints(sample);
    const std::vector<float> golden = GoldenFile(shared_golden("nll_" + sample)).floats("nll");
    for (size_t window = 0; window < 2; ++window) {
      double expected = 0;
      for (size_t i = 0; i < 1023; ++i) expected += golden[window * 1023 + i] / 1023;
      EXPECT_NEAR(model.nll(std::span(ids).subspan(window * 1024, 1024)), expected, 5e-4 * expected)
          << sample << ", window " << window;
    }
  }
}

TEST(MinnowBf16, Drafts) {
  SLIP_SKIP_WITHOUT_SHARED();
  LoadedModel model(shared_minnow("bf16"), best_backend(), {.with_drafter = true});
  for (const std::string name : {"story", "docs_page", "tool_call"}) {
    const GoldenFile golden(shared_golden("mtp_" + name));
    const LoadedModel::Drafts drafts = model.drafts(golden.ints("ids"));
    Differences step1, step2;
    step1.add(drafts.step1, golden, "step1_");
    step2.add(drafts.step2, golden, "forced_step2_");
    SCOPED_TRACE(name);
    // No router gaps are known along these texts: a slot in 200 may be routed otherwise.
    EXPECT_LE(step1.percentile(0.995), 1e-3) << step1.describe();
    EXPECT_LE(step2.percentile(0.995), 1e-3) << step2.describe();
    EXPECT_GE(step1.same_choice(), 0.99) << step1.describe();
    EXPECT_GE(step2.same_choice(), 0.99) << step2.describe();
  }
}

// Logits and drafts of a quantised form against weights_<form>.
void expect_form(LoadedModel& model, const std::string& form, Arithmetic arithmetic) {
  const GoldenFile golden(shared_golden("weights_" + form));
  Differences logits, drafts;
  for (const std::string name : {"story", "docs_page", "tool_call", "needle_1500"})
    logits.add(model.logits(prompt_ids(name)), golden, name + ".",
               golden.floats(name + ".router_gap"), 1e-4f);
  for (const std::string name : {"story", "docs_page"}) {
    const LoadedModel::Drafts found = model.drafts(prompt_ids(name));
    drafts.add(found.step1, golden, name + ".mtp1_");
    drafts.add(found.step2, golden, name + ".mtp2_");
  }
  SCOPED_TRACE(form);
  logits.expect_within(arithmetic);
  if (arithmetic == Arithmetic::float32) {
    EXPECT_LE(drafts.percentile(0.995), 1e-3) << drafts.describe();
  } else {
    EXPECT_LE(drafts.rms(), 0.4) << drafts.describe();
  }
}

TEST(MinnowFp8, LogitsAndDrafts) {
  SLIP_SKIP_WITHOUT_SHARED();
  LoadedModel model(shared_minnow("fp8"), best_backend(), {.with_drafter = true});
  expect_form(model, "fp8", Arithmetic::float32);
}

bool is_shared_expert(const std::string& name) {
  return name.starts_with("model.") && name.find(".mlp.shared_expert.") != std::string::npos;
}

// int4 with fp8's shared experts, as `convert hybrid` would write it: one file of each.
void write_hybrid(const std::filesystem::path& folder) {
  const Checkpoint int4 = Checkpoint::open(minnow_folder()).value();
  const Checkpoint fp8 = Checkpoint::open(shared_minnow("fp8")).value();
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : int4.tensors())
    if (!is_shared_expert(tensor.name))
      tensors.push_back({tensor.name, tensor.type, tensor.shape, tensor.data});
  const size_t kept = tensors.size();
  for (const StoredTensor& tensor : fp8.tensors())
    if (is_shared_expert(tensor.name))
      tensors.push_back({tensor.name, tensor.type, tensor.shape, tensor.data});
  EXPECT_EQ(int4.tensors().size() - kept, 8u * 3) << "three matrices in each of eight layers";
  EXPECT_EQ(tensors.size() - kept, 8u * 6) << "and their scales";
  ASSERT_TRUE(write_safetensors(folder / "model.safetensors", tensors, "pt").ok());
  std::filesystem::copy(minnow_folder() / "config.json", folder / "config.json");
}

TEST(MinnowHybrid, LogitsAndDraftsOnTheFastBackend) {
  SLIP_SKIP_WITHOUT_SHARED();
  const TempFolder folder;
  write_hybrid(folder.path());
  LoadedModel model(folder.path(), best_backend(), {.with_drafter = true});
  expect_form(model, "hybrid", Arithmetic::int16_activations);
}

TEST(MinnowHybrid, ReferenceLogits) {
  SLIP_SKIP_WITHOUT_SHARED();
  const TempFolder folder;
  write_hybrid(folder.path());
  LoadedModel model(folder.path(), ref_backend());
  const GoldenFile golden(shared_golden("weights_hybrid"));
  Differences differences;
  differences.add(model.logits(prompt_ids("story")), golden, "story.",
                  golden.floats("story.router_gap"), 1e-4f);
  differences.expect_within(Arithmetic::float32);
}

}  // namespace
}  // namespace slip
