// What a row's logits may not depend on: the rows beside it, how a text was cut into steps, other
// sequences, earlier runs, the number of threads. The fast backend promises the same bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <tuple>

#include "tests/golden/golden_file.h"
#include "tests/models/direct_model.h"

namespace slip {
namespace {

struct Case {
  std::string name;
  std::filesystem::path folder;
  size_t tokens;  // of the text that is run
};
std::ostream& operator<<(std::ostream& out, const Case& tested) { return out << tested.name; }

std::vector<Case> cases() {
  return {{"dense", golden_folder() / "tiny/qwen3_5_dense", 150},
          {"moe", golden_folder() / "tiny/qwen3_5_moe", 150},
          {"moe_split", golden_folder() / "tiny/qwen3_5_moe_split", 150},
          {"gemma", golden_folder() / "tiny/gemma4_e", 150},
          {"minnow", minnow_folder(), 150}};
}

std::vector<int32_t> text_of(const Case& tested, int which = 0) {
  std::vector<int32_t> ids;
  if (tested.name == "minnow") {
    ids = prompt_ids(which == 0 ? "docs_page" : "unicode");
  } else {
    ids = GoldenFile(tested.folder / "golden.safetensors").ints("far.ids");
    if (which == 1) ids.erase(ids.begin(), ids.begin() + 500);
  }
  ids.resize(tested.tokens);
  return ids;
}

// "" or where the first different bit is.
std::string difference(const std::vector<float>& a, const std::vector<float>& b,
                       int64_t vocabulary) {
  if (a.size() != b.size()) return cat(a.size(), " and ", b.size(), " values");
  int64_t different = 0;
  std::string first;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) == 0) continue;
    if (different++ == 0)
      first = cat("row ", int64_t(i) / vocabulary, ", logit ", int64_t(i) % vocabulary, ": ", a[i],
                  " and ", b[i]);
  }
  return different == 0 ? "" : cat(different, " of ", a.size(), " differ, first at ", first);
}

class FastModel : public ::testing::TestWithParam<std::tuple<Case, Backend>> {
 protected:
  const Case& tested() const { return std::get<0>(GetParam()); }
  const Backend& backend() const { return std::get<1>(GetParam()); }
  std::vector<int32_t> text(int which = 0) const {
    std::vector<int32_t> ids = text_of(tested(), which);
    // Plain C++ takes ten times as long.
    if (tested().name == "minnow" && backend().name == "cpu_portable") ids.resize(72);
    return ids;
  }
};

TEST_P(FastModel, TheCutIntoStepsChangesNoBit) {
  DirectModel model(tested().folder, backend());
  const std::vector<int32_t> ids = text();
  const std::vector<float> whole = model.run(ids, ids.size());
  for (const size_t chunk : {1, 2, 3, 7, 8, 9, 63, 64, 65, 100})
    EXPECT_EQ(difference(model.run(ids, chunk), whole, model.vocabulary()), "")
        << "in chunks of " << chunk;
}

TEST_P(FastModel, OtherSequencesInTheStepChangeNoBit) {
  DirectModel model(tested().folder, backend());
  const std::vector<int32_t> a = text(0), b = text(1);
  const std::vector<float> alone_a = model.run(a, 50), alone_b = model.run(b, 50);
  const SequenceId first = model.cache().open().value(), second = model.cache().open().value();
  std::vector<float> together_a, together_b;
  // Ragged: a long part of one beside a short part of the other, then the other way round.
  size_t done_a = 0, done_b = 0;
  const auto vocabulary = size_t(model.vocabulary());
  for (size_t turn = 0; done_a < a.size() || done_b < b.size(); ++turn) {
    const size_t rows_a = std::min<size_t>(turn % 2 ? 1 : 37, a.size() - done_a);
    const size_t rows_b = std::min<size_t>(turn % 2 ? 29 : 2, b.size() - done_b);
    std::vector<DirectModel::Part> parts;
    if (rows_a) parts.push_back({first, int64_t(done_a), std::span(a).subspan(done_a, rows_a)});
    if (rows_b) parts.push_back({second, int64_t(done_b), std::span(b).subspan(done_b, rows_b)});
    const std::vector<float> logits = model.step(parts);
    const auto middle = logits.begin() + int64_t(rows_a * vocabulary);
    together_a.insert(together_a.end(), logits.begin(), middle);
    together_b.insert(together_b.end(), middle, logits.end());
    done_a += rows_a;
    done_b += rows_b;
  }
  EXPECT_EQ(difference(together_a, alone_a, model.vocabulary()), "");
  EXPECT_EQ(difference(together_b, alone_b, model.vocabulary()), "");
}

TEST_P(FastModel, AClearedSequenceStartsOver) {
  DirectModel model(tested().folder, backend());
  const std::vector<int32_t> ids = text(), other = text(1);
  const SequenceId sequence = model.cache().open().value();
  const std::vector<float> first = model.run(sequence, ids, 40);
  model.cache().clear(sequence);
  model.run(sequence, other, 33);
  model.cache().clear(sequence);
  EXPECT_EQ(difference(model.run(sequence, ids, 40), first, model.vocabulary()), "");
}

TEST_P(FastModel, TheNumberOfThreadsChangesNoBit) {
  const std::vector<int32_t> ids = text();
  DirectModel one(tested().folder, backend(), 1);
  const std::vector<float> expected = one.run(ids, 70);
  const std::vector<float> decoded = one.run(std::span(ids).first(20), 1);
  for (const int threads : {2, 3, 4}) {
    DirectModel model(tested().folder, backend(), threads);
    EXPECT_EQ(difference(model.run(ids, 70), expected, model.vocabulary()), "")
        << threads << " threads";
    EXPECT_EQ(difference(model.run(std::span(ids).first(20), 1), decoded, model.vocabulary()), "")
        << threads << " threads, token by token";
  }
}

TEST_P(FastModel, Bf16KeysAndValuesAreRowInvariantToo) {
  DirectModel model(tested().folder, backend(), 2, KvRecipe{KvCodec::bf16, KvCodec::bf16});
  const std::vector<int32_t> ids = text();
  EXPECT_EQ(difference(model.run(ids, 1), model.run(ids, 64), model.vocabulary()), "");
}

INSTANTIATE_TEST_SUITE_P(Models, FastModel,
                         ::testing::Combine(::testing::ValuesIn(cases()),
                                            ::testing::ValuesIn(cpu_backends())),
                         [](const auto& test) {
                           return std::get<0>(test.param).name + "_" + std::get<1>(test.param).name;
                         });

class ReferenceModel : public ::testing::TestWithParam<Case> {};

// Plain loops too, on fewer tokens.
TEST_P(ReferenceModel, TheCutIntoStepsChangesNoBit) {
  DirectModel model(GetParam().folder, ref_backend());
  std::vector<int32_t> ids = text_of(GetParam());
  ids.resize(GetParam().name == "minnow" ? 9 : 70);
  const std::vector<float> whole = model.run(ids, ids.size());
  for (const size_t chunk : {1, 7})
    EXPECT_EQ(difference(model.run(ids, chunk), whole, model.vocabulary()), "") << chunk;
}

INSTANTIATE_TEST_SUITE_P(Models, ReferenceModel, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace slip
