// minnow with formats made at load against the goldens of files that hold those formats. The
// quantizers are the same, so the goldens apply as they are.
#include <cstring>

#include "checkpoint/checkpoint.h"
#include "tests/golden/compare.h"
#include "tests/models/drafting_model.h"
#include "weights/checkpoint_source.h"
#include "weights/recoding.h"

namespace slip {
namespace {

struct Form {
  const char* name;
  std::filesystem::path folder;
  WeightChoices choices;
};

std::vector<Form> forms() {
  const WeightChoices hybrid{.shared_experts = WeightFormat::fp8_block}, head{.int8_head = true};
  return {{"hybrid", minnow_folder(), hybrid},
          {"hybrid_int8_head",
           minnow_folder(),
           {.int8_head = true, .shared_experts = WeightFormat::fp8_block}},
          {"int8_head", shared_folder() / "minnow/bf16", head}};
}

GoldenFile golden_of(const Form& form) {
  return GoldenFile(shared_folder() / "goldens/minnow" /
                    cat("weights_", form.name, ".safetensors"));
}

// Logits and drafts of the prompts, over all rows.
struct Compared {
  Differences logits, drafts;
};
Compared compare(const Form& form, const Backend& backend,
                 const std::vector<std::string>& prompts) {
  DraftingModel model(form.folder, backend, form.choices);
  const GoldenFile golden = golden_of(form);
  Compared compared;
  for (const std::string& name : prompts) {
    DraftingModel::Rows rows = model.run(prompt_ids(name));
    compared.logits.add(rows.logits, golden, name + ".", golden.floats(name + ".router_gap"),
                        1e-4f);
    if (!golden.has(name + ".mtp1_top_ids")) continue;
    rows.drafts.values.resize(size_t(golden.shape(name + ".mtp1_top_ids")[0] * 8192));
    compared.drafts.add(rows.drafts, golden, name + ".mtp1_");
  }
  return compared;
}

TEST(MinnowRecoded, LogitsAndDraftsOnTheFastBackend) {
  SLIP_SKIP_WITHOUT_SHARED();
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const Compared found =
        compare(form, fast_backends().front(), {"story", "docs_page", "tool_call", "needle_1500"});
    RecordProperty(form.name, found.logits.describe());
    found.logits.expect_within(Arithmetic::int16_activations);
    EXPECT_LE(found.drafts.rms(), 0.2) << found.drafts.describe();
    EXPECT_LE(found.drafts.percentile(0.99), 0.8) << found.drafts.describe();
    EXPECT_GE(found.drafts.same_choice(), 0.975) << found.drafts.describe();
  }
}

TEST(MinnowRecoded, ReferenceLogitsAndDrafts) {
  SLIP_SKIP_WITHOUT_SHARED();
  for (const Form& form : forms()) {
    SCOPED_TRACE(form.name);
    const Compared found = compare(form, ref_backend(), {"story"});
    found.logits.expect_within(Arithmetic::float32);
    found.drafts.expect_within(Arithmetic::float32);
  }
}

// A form that was not made would be told from one that was: by ten times the reference's tolerance.
TEST(MinnowRecoded, GoldensTellTheFormsApart) {
  SLIP_SKIP_WITHOUT_SHARED();
  for (Form form : forms()) {
    form.choices = {};
    const Compared found = compare(form, fast_backends().front(), {"docs_page"});
    EXPECT_GT(found.logits.largest(), 1e-2) << form.name << ": " << found.logits.describe();
  }
}

std::vector<std::byte> read_bytes(WeightSource& source, const std::string& module,
                                  const WeightInfo& found, const Recoding& recoding) {
  const WeightInfo info = recoded_info(found, recoding);
  EXPECT_EQ(info.format, WeightFormat::fp8_block) << module;
  const Buffer buffer(host_memory(), plain_bytes(info));
  const Weight plain = plain_weight(info, buffer.data());
  EXPECT_TRUE(read_recoded(source, {module, found, recoding}, plain).ok()) << module;
  return {buffer.data(), buffer.data() + buffer.size()};
}

TEST(MinnowRecoded, Fp8IsWhatTheFp8FilesHoldBitForBit) {
  SLIP_SKIP_WITHOUT_SHARED();
  const Checkpoint bf16 = Checkpoint::open(minnow_folder()).value();
  const Checkpoint fp8 = Checkpoint::open(shared_folder() / "minnow/fp8").value();
  CheckpointSource original(bf16, {}), published(fp8, {});
  for (int layer = 0; layer < 8; ++layer)
    for (const char* projection : {"gate_proj", "up_proj", "down_proj"}) {
      const std::string module =
          cat("model.language_model.layers.", layer, ".mlp.shared_expert.", projection);
      const bool down = std::strcmp(projection, "down_proj") == 0;
      const int64_t out = down ? 384 : 128, in = down ? 128 : 384;
      EXPECT_EQ(read_bytes(original, module, original.describe(module, out, in).value(),
                           {.format = WeightFormat::fp8_block}),
                read_bytes(published, module, published.describe(module, out, in).value(), {}))
          << module;
    }
}

}  // namespace
}  // namespace slip
