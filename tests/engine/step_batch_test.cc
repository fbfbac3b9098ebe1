// A row's logits have the same bits whatever else is in the step: what the service's promise that
// an answer is the same alone and in company rests on.
#include "engine/step_batch.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/golden/golden_file.h"
#include "tests/golden/loaded_model.h"

namespace slip {
namespace {

struct Case {
  Backend backend;
  std::string recipe;
  std::filesystem::path folder;
  int64_t sequences;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const std::filesystem::path tiny = golden_folder() / "tiny/qwen3_5_moe_split";
  for (const Backend& backend : cpu_backends()) all.push_back({backend, "f32", tiny, 64});
  for (const char* recipe : {"f32", "bf16", "k4v4"})
    all.push_back({cpu_backends().front(), recipe, minnow_folder(), 64});
  all.push_back({ref_backend(), "f32", tiny, 6});
  return all;
}

class StepRows : public ::testing::TestWithParam<Case> {
 protected:
  // Texts of different lengths, so that decode rows are at different positions.
  std::vector<int32_t> text(int64_t which) const {
    std::vector<int32_t> ids;
    const int64_t length = 5 + which * 13 % 90;
    for (int64_t i = 0; i < length; ++i) ids.push_back(int32_t(3 + (which * 31 + i * i * 7) % 200));
    return ids;
  }
  static std::vector<float> copy(std::span<const float> row) { return {row.begin(), row.end()}; }

  // Logits after the text, computed in steps of `chunk` rows, the last one alone.
  std::vector<float> alone(const std::vector<int32_t>& ids, int64_t chunk) {
    StepBatch batch(model_.engine());
    Cache& cache = model_.engine().cache();
    const SequenceId sequence = cache.open().value();
    std::vector<float> logits;
    const auto length = int64_t(ids.size());
    for (int64_t done = 0; done < length;) {
      const int64_t rows = std::min(chunk, length - done);
      batch.clear();
      batch.add(sequence, std::span(ids).subspan(size_t(done), size_t(rows)), 1,
                Cache::Rows::certain);
      batch.run();
      cache.commit(sequence, rows);
      done += rows;
      logits = copy(batch.logits(0, 0).values());
    }
    cache.close(sequence);
    return logits;
  }

  LoadedModel model_{GetParam().folder,
                     GetParam().backend,
                     {.context = 256,
                      .max_rows = 256,
                      .kv = parse_kv_recipe(GetParam().recipe).value(),
                      .sequences = GetParam().sequences + 2}};
};

TEST_P(StepRows, DoNotDependOnTheirCompany) {
  const int64_t sequences = GetParam().sequences;
  Cache& cache = model_.engine().cache();
  StepBatch batch(model_.engine());
  std::vector<std::vector<float>> expected;
  std::vector<SequenceId> open;
  for (int64_t i = 0; i < sequences; ++i) {
    const std::vector<int32_t> ids = text(i);
    expected.push_back(alone(ids, 256));
    if (i < 4) {
      EXPECT_EQ(alone(ids, 7), expected.back()) << "in odd chunks";
      EXPECT_EQ(alone(ids, 1), expected.back()) << "token by token";
    }
    // All but the last token.
    open.push_back(cache.open().value());
    batch.clear();
    batch.add(open.back(), std::span(ids).first(ids.size() - 1), 0, Cache::Rows::certain);
    batch.run();
    cache.commit(open.back(), int64_t(ids.size()) - 1);
  }
  // The last tokens of all in one step, beside a long and a short piece of prompts.
  const std::vector<int32_t> prompt = text(6), other = text(3);
  const std::vector<float> prompt_logits = alone(prompt, 256);
  const SequenceId first = cache.open().value(), second = cache.open().value();
  batch.clear();
  batch.add(first, other, 0, Cache::Rows::certain);
  batch.add(second, prompt, 1, Cache::Rows::certain);
  for (int64_t i = 0; i < sequences; ++i) {
    const int32_t last = text(i).back();
    batch.add(open[size_t(i)], {&last, 1}, 1, Cache::Rows::certain);
  }
  batch.run();
  EXPECT_EQ(copy(batch.logits(1, 0).values()), prompt_logits);
  for (int64_t i = 0; i < sequences; ++i) {
    const std::vector<float> together = copy(batch.logits(size_t(i) + 2, 0).values());
    EXPECT_EQ(std::memcmp(together.data(), expected[size_t(i)].data(), together.size() * 4), 0)
        << "sequence " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, StepRows, ::testing::ValuesIn(cases()), [](const auto& test) {
  return cat(test.param.backend.name, "_", test.param.recipe,
             test.param.folder == minnow_folder() ? "_minnow" : "_tiny");
});

}  // namespace
}  // namespace slip
