// A drafter that is often right: most drafts are taken, and the text is the same.
#include "tests/engine/agreeing_gemma.h"

#include <gtest/gtest.h>

#include "engine/generate.h"
#include "tests/checkpoint/test_files.h"
#include "tests/golden/loaded_model.h"

namespace slip {
namespace {

class AgreeingGemma : public ::testing::TestWithParam<Backend> {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    write_agreeing_gemma(model_folder(), kAgreeingInSmall);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }
  static std::filesystem::path model_folder() { return folder_->path() / "model"; }

 private:
  static inline TempFolder* folder_ = nullptr;
};

TEST_P(AgreeingGemma, MostDraftsAreTakenAndTheTextIsTheSame) {
  LoadedModel model(model_folder(), GetParam(),
                    {.with_drafter = true, .context = 512, .max_rows = 64, .max_drafts = 4});
  GenerateRequest request;
  request.prompt = {3, 1, 4, 1, 5, 9, 2, 6};
  request.max_tokens = 200;
  request.sampling.temperature = 0;
  const auto run = [&](const std::optional<DraftLength>& drafts) {
    Session session(model.engine());
    std::optional<SoloDrafting> drafting(drafts);
    request.drafts = drafting ? &*drafting : nullptr;
    return generate(session, nullptr, request, {}).value();
  };
  const GenerateResult plain = run(std::nullopt);
  ASSERT_EQ(plain.ids.size(), 200u);
  for (const int64_t length : {1, 2, 4}) {
    const GenerateResult drafted = run(DraftLength::fixed(length));
    EXPECT_EQ(drafted.ids, plain.ids) << length << " drafts";
    const DraftCounts& counts = drafted.drafts;
    EXPECT_GE(counts.drafted, 100) << length << " drafts";
    EXPECT_GE(double(counts.accepted), 0.8 * double(counts.drafted)) << length << " drafts";
    // Not always, or rejection would not be met.
    EXPECT_LT(counts.accepted, counts.drafted) << length << " drafts";
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, AgreeingGemma, ::testing::ValuesIn(all_backends()),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace slip
