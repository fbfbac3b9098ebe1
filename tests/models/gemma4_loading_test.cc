// Gemma 4 from files: where drafters are found, what does not fit, formats made at load.
#include <cmath>

#include "checkpoint/checkpoint.h"
#include "checkpoint/config_reader.h"
#include "checkpoint/safetensors.h"
#include "kernels/ref/ref_ops.h"
#include "kernels/ref/ref_ops_impl.h"
#include "models/gemma4_assistant/files.h"
#include "models/model_source.h"
#include "tests/checkpoint/test_files.h"
#include "tests/golden/loaded_model.h"
#include "tests/golden/tiny_folder.h"

namespace slip {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

void copy_model(const std::string& name, const fs::path& to) {
  fs::create_directories(to);
  for (const char* file : {"config.json", "model.safetensors"})
    fs::copy_file(tiny_folder(name) / file, to / file);
}

// The tensors of a tiny model that `keep` keeps, as it leaves them, and `tensors`.
void write_changed(const std::string& name, const fs::path& to,
                   const std::function<bool(TensorToWrite&)>& keep,
                   std::vector<TensorToWrite> tensors = {}) {
  fs::create_directories(to);
  fs::copy_file(tiny_folder(name) / "config.json", to / "config.json");
  const Checkpoint checkpoint = Checkpoint::open(tiny_folder(name)).value();
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    TensorToWrite written{tensor.name, tensor.type, tensor.shape, tensor.data};
    if (keep(written)) tensors.push_back(written);
  }
  ASSERT_TRUE(write_safetensors(to / "model.safetensors", tensors, "pt").ok());
}

bool drafts(const fs::path& model) { return ModelSource::open(model).value().can_draft(); }

TEST(Gemma4Drafters, AreFoundBesideTheModel) {
  const TempFolder folder;
  const fs::path model = folder.path() / "gemma", inside = model / "assistant";
  copy_model("gemma4_e", model);
  EXPECT_FALSE(drafts(model));
  copy_model("gemma4_e_assistant", folder.path() / "gemma-assistant");
  EXPECT_TRUE(drafts(model));
  EXPECT_TRUE(drafts(folder.path() / "gemma/")) << "as a shell completes it";
  fs::rename(folder.path() / "gemma-assistant", inside);
  EXPECT_TRUE(drafts(model));
}

TEST(Gemma4Drafters, AreFoundInAHuggingFaceCache) {
  const TempFolder folder;
  const fs::path model = folder.path() / "models--google--gemma-4-E2B-it/snapshots/0123";
  copy_model("gemma4_e", model);
  EXPECT_FALSE(drafts(model));
  copy_model("gemma4_e_assistant",
             folder.path() / "models--google--gemma-4-E2B-it-assistant/snapshots/4567");
  EXPECT_TRUE(drafts(model));
}

TEST(Gemma4Drafters, AreThoseOfTheMainBranch) {
  const TempFolder folder;
  const fs::path model = folder.path() / "models--google--gemma-4-E2B-it/snapshots/0123";
  const std::string drafter = "models--google--gemma-4-E2B-it-assistant";
  const char* const commits[] = {"45", "67", "89"};
  for (const char* commit : commits)
    folder.write(drafter + "/snapshots/" + commit + "/config.json", "");
  for (const char* commit : commits) {
    folder.write(drafter + "/refs/main", commit);
    EXPECT_EQ(gemma4_assistant::find_drafter(model),
              folder.path() / drafter / "snapshots" / commit);
  }
  folder.write(drafter + "/refs/main", "gone");
  EXPECT_EQ(gemma4_assistant::find_drafter(model), folder.path() / drafter / "snapshots/45");
}

// One that was found is left alone, with a note; one that was asked for is an error.
TEST(Gemma4Drafters, ThatDoNotFitSayWhy) {
  if (!has_tiny("gemma4_31b_assistant")) GTEST_SKIP() << kTinyAbsent;
  const TempFolder folder;
  copy_model("gemma4_e", folder.path() / "m");
  copy_model("gemma4_31b_assistant", folder.path() / "m-assistant");
  const ModelSource source = ModelSource::open(folder.path() / "m").value();
  EXPECT_FALSE(source.can_draft());
  ASSERT_FALSE(source.notes().empty());
  EXPECT_THAT(source.notes().back(), HasSubstr("hidden size 96, this one has 64"));
  const auto refused = ModelSource::open(folder.path() / "m", folder.path() / "m-assistant");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.failure().message, HasSubstr("m-assistant"));
  const auto no_model = ModelSource::open(folder.path() / "m-assistant");
  ASSERT_FALSE(no_model.ok());
  EXPECT_THAT(no_model.failure().message, HasSubstr("drafter"));
}

// Neither is refused for it.
TEST(Gemma4Loading, WarnsOfKeysThatNobodyKnows) {
  const TempFolder folder;
  const auto copy_with = [&](const std::string& name, const fs::path& to, const char* key) {
    copy_model(name, to);
    JsonObject config = read_config_json(to).value();
    for (int i = 0; i < 10; ++i) config["text_config"].as_object()[cat(key, i)] = i;
    std::ofstream(to / "config.json") << dump_json(config);
  };
  copy_model("gemma4_e", folder.path() / "plain");
  copy_model("gemma4_e_assistant", folder.path() / "plain-assistant");
  EXPECT_THAT(ModelSource::open(folder.path() / "plain").value().warnings(), testing::IsEmpty());
  copy_with("gemma4_e", folder.path() / "m", "new\n");
  copy_with("gemma4_e_assistant", folder.path() / "m-assistant", "draft");
  const ModelSource source = ModelSource::open(folder.path() / "m").value();
  EXPECT_TRUE(source.can_draft());
  EXPECT_THAT(
      source.warnings(),
      testing::ElementsAre(testing::AllOf(testing::StartsWith("config.json has keys that"),
                                          HasSubstr("know: text_config.new?0, text_config.new?1,"),
                                          HasSubstr("new?7, 2 more; they are ignored")),
                           HasSubstr("the drafter's config.json has keys that")));
  EXPECT_THAT(source.notes(), testing::IsSupersetOf(source.warnings()));
}

TEST(Gemma4Drafters, HaveAnOrderOfAllTokens) {
  const TempFolder folder;
  std::vector<int64_t> order(384);
  for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
  order[7] = 9;  // twice
  write_changed("gemma4_e_assistant", folder.path() / "d", [&](TensorToWrite& tensor) {
    if (tensor.name == "masked_embedding.token_ordering")
      tensor.data = std::as_bytes(std::span(order));
    return true;
  });
  const auto source = ModelSource::open(tiny_folder("gemma4_e"), folder.path() / "d");
  ASSERT_FALSE(source.ok());
  EXPECT_THAT(source.failure().message, HasSubstr("every token once, found 9"));
}

// A config that announces clusters, and files without them.
TEST(Gemma4Drafters, WithoutClustersUseTheWholeHead) {
  const TempFolder folder;
  write_changed("gemma4_e_assistant", folder.path() / "d", [](TensorToWrite& tensor) {
    return tensor.name.find("masked_embedding") == std::string::npos;
  });
  LoadedModel model(tiny_folder("gemma4_e"), cpu_backends().front(),
                    {.max_drafts = 2, .drafter = folder.path() / "d"});
  Session session(model.engine());
  const std::vector<int32_t> ids = {2, 5, 9};
  ASSERT_TRUE(session.feed(ids).ok());
  const int32_t next = 4;
  ASSERT_TRUE(session.draft({&next, 1}).has_value());
}

TEST(Gemma4Loading, OtherFamiliesAreNamed) {
  const TempFolder folder;
  folder.write("config.json", R"({"model_type": "llama"})");
  const auto source = ModelSource::open(folder.path());
  ASSERT_FALSE(source.ok());
  for (const char* part : {"config.json", "llama", "qwen3_5", "gemma4"})
    EXPECT_THAT(source.failure().message, HasSubstr(part));
}

Result<std::unique_ptr<Model>> load(const fs::path& folder, Ops& ops) {
  ThreadPool pool(1);
  SLIP_TRY(const ModelSource source, ModelSource::open(folder));
  return source.load({.max_rows = 4, .context = 64}, ops, pool, {});
}

TEST(Gemma4Loading, MissingAndExtraTensorsAreNamed) {
  const TempFolder folder;
  const std::unique_ptr<Ops> ops = make_ref_ops();
  write_changed("gemma4_e", folder.path() / "less", [](TensorToWrite& tensor) {
    return tensor.name.find("layers.3.layer_scalar") == std::string::npos;
  });
  const auto less = load(folder.path() / "less", *ops);
  ASSERT_FALSE(less.ok());
  EXPECT_THAT(less.failure().message, HasSubstr("layers.3.layer_scalar"));
  // All that the model needs, and a norm of a layer that it has not.
  const std::vector<float> surplus(64);
  write_changed("gemma4_e", folder.path() / "more", [](TensorToWrite&) { return true; },
                {{.name = "model.language_model.layers.10.input_layernorm.weight",
                  .type = StoredType::f32,
                  .shape = {64},
                  .data = std::as_bytes(std::span(surplus))}});
  const auto more = load(folder.path() / "more", *ops);
  ASSERT_FALSE(more.ok());
  EXPECT_THAT(more.failure().message, HasSubstr("layers.10.input_layernorm"));
}

TEST(Gemma4Loading, TablesOfRowsStayInTheFile) {
  const std::unique_ptr<Ops> ops = make_ref_ops();
  const ModelSource source = ModelSource::open(tiny_folder("gemma4_e")).value();
  const ModelPlan plan = source.plan({.max_rows = 4, .context = 64}, *ops).value();
  int found = 0;
  for (const PlacedWeight& weight : plan.weights) {
    if (weight.name.find("embed_tokens_per_layer") == std::string::npos) continue;
    ++found;
    EXPECT_EQ(weight.bytes, 0u);
    EXPECT_EQ(weight.info.in, 160);
  }
  EXPECT_EQ(found, 1);
}

// The head and the drafter rounded at load: near what they were, and the text stays the model's.
TEST(Gemma4Loading, FormatsMadeAtLoad) {
  const GoldenFile golden(tiny_folder("gemma4_e") / "golden.safetensors");
  const std::vector<int32_t> ids = golden.ints("short.ids");
  ThreadPool pool(2);
  for (const WeightFormat drafter : {WeightFormat::int8_row, WeightFormat::int4_group}) {
    const std::unique_ptr<Ops> ops = cpu_backends().front().make(pool);
    const ModelSource source =
        ModelSource::open(tiny_folder("gemma4_e"), tiny_folder("gemma4_e_assistant")).value();
    EngineOptions options;
    options.memory.context = 256;
    options.max_drafts = 3;
    options.weights = {.int8_head = true, .drafter = drafter};
    const auto engine = Engine::load(source, options, *ops, pool, {}).value();
    std::map<WeightFormat, int> formats;
    for (const PlacedWeight& weight : engine->model().placed_weights())
      if (weight.drafts && weight.info.out > 1) ++formats[weight.info.format];
    EXPECT_GT(formats[drafter], 20);
    EXPECT_EQ(formats[WeightFormat::bf16], 0);
    Session session(*engine);
    ASSERT_TRUE(session.feed(ids).ok());
    const std::vector<float> logits = golden.floats("short.logits");
    const auto last = std::span(logits).last(384);
    EXPECT_LE(largest_difference(session.logits(), last), 0.3) << "an int8 head";
    EXPECT_GT(largest_difference(session.logits(), last), 1e-4) << "the head is as it was";
    const int32_t next = argmax(session.logits());
    ASSERT_TRUE(session.draft({&next, 1}).has_value());
  }
}

TEST(Gemma4StepCost, IsWhatWasPlacedAndARowOfEachTable) {
  LoadedModel loaded(tiny_folder("gemma4_e"), cpu_backends().front(),
                     {.max_drafts = 2, .drafter = tiny_folder("gemma4_e_assistant")});
  Model& model = loaded.engine().model();
  double step = 0, draft = 0;
  for (const PlacedWeight& weight : model.placed_weights()) {
    const bool cluster = weight.name.find("cluster") != std::string::npos;
    if (weight.name.ends_with("layer_scalar")) continue;  // a number on the host
    if (!weight.drafts) {
      step += double(weight.bytes);  // the embedding is the head
    } else {
      draft += double(weight.bytes) * (cluster ? 5.0 / 24 : 1);
    }
  }
  for (const int64_t rows : {1, 4}) {
    const double expected = step + double(rows) * (64 + 160) * 2;
    EXPECT_NEAR(double(model.step_cost(rows, 0, {}).weight_bytes), expected, 1) << rows;
  }
  EXPECT_NEAR(double(model.drafter()->cost(0, {}).weight_bytes), draft + 64 * 2, 1);
  // Eight layers of one head of 32 see 24 positions, two of one of 64 all 1000.
  const KvRecipe f32{};
  EXPECT_EQ(model.step_cost(1, 1000, f32).cache_bytes, (8u * 24 * 32 + 2 * 1000 * 64) * 2 * 4);
}

}  // namespace
}  // namespace slip
