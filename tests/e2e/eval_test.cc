// The verbs that outside checks call: what they print and write, not whether the numbers are right
// (tests/golden).
#include <gtest/gtest.h>

#include <cstring>

#include "base/files.h"
#include "tests/e2e/process.h"

namespace slip::e2e {
namespace {

// Shapes of the tensors in a safetensors file, as JSON text: {"logits": [3, 8192]}.
std::string shapes_in(const std::filesystem::path& path) {
  const std::string file = read_text_file(path).value();
  uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof(length));
  const Json header = parse_json(std::string_view(file).substr(8, length), path.string()).value();
  JsonObject shapes;
  for (const auto& [name, entry] : header.get_object()) {
    if (name == "__metadata__") continue;
    EXPECT_EQ(entry.at("dtype").get_string(), "F32");
    shapes[name] = entry.at("shape");
  }
  return dump_json(shapes);
}

class EvalVerbs : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string ids_ = folder_.write("ids.json", "[8161, 846, 198, 72, 31, 400]");
  std::string out_ = (folder_.path() / "out.safetensors").string();
};

TEST_F(EvalVerbs, LogitsOfEveryPositionOrTheLast) {
  Finished all = run({"eval", "logits", "--ids", ids_, "--out", out_, "--json"});
  ASSERT_EQ(all.status, 0) << all.err;
  EXPECT_EQ(all.json().at("rows").as_int64(), 6);
  EXPECT_EQ(shapes_in(out_), "{\"logits\": [6, 8192]}");
  const Finished last = run({"eval", "logits", "--ids", ids_, "--out", out_, "--last", "2"});
  ASSERT_EQ(last.status, 0) << last.err;
  EXPECT_EQ(shapes_in(out_), "{\"logits\": [2, 8192]}");
}

TEST_F(EvalVerbs, DraftsOfEverySlot) {
  const Finished drafts = run({"eval", "mtp", "--ids", ids_, "--out", out_, "--steps", "2"});
  ASSERT_EQ(drafts.status, 0) << drafts.err;
  EXPECT_EQ(shapes_in(out_), "{\"draft1\": [5, 8192], \"draft2\": [5, 8192]}");
}

TEST_F(EvalVerbs, PerplexityCountsPredictedTokens) {
  const Finished whole = run({"eval", "ppl", "--ids", ids_, "--json"});
  ASSERT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(whole.json().at("tokens").as_int64(), 5);
  EXPECT_GT(whole.json().at("perplexity").as_double(), 1);
  const Finished windows = run({"eval", "ppl", "--ids", ids_, "--window", "3", "--json"});
  EXPECT_EQ(windows.json().at("tokens").as_int64(), 4) << "each window predicts all but its first";
}

TEST_F(EvalVerbs, TextThereAndBack) {
  const Finished tokens = run({"eval", "tokenize"}, "A fox, 7 lanterns.\n");
  ASSERT_EQ(tokens.status, 0) << tokens.err;
  const std::string printed = folder_.write("printed.json", tokens.out);
  const Finished ppl = run({"eval", "ppl", "--ids", printed});
  EXPECT_EQ(ppl.status, 0) << ppl.err;
  const std::string other = folder_.write("other.json", "{\"tokens\": [1, 2]}");
  EXPECT_NE(run({"eval", "ppl", "--ids", other}).err.find("an object without \"ids\""),
            std::string::npos);
  const Finished text = run({"eval", "detokenize"}, tokens.out);
  EXPECT_EQ(text.json().at("text").as_string(), "A fox, 7 lanterns.\n") << text.err;
}

TEST_F(EvalVerbs, TemplatesRenderOrSayWhyNot) {
  const Finished rendered =
      run({"eval", "render"}, R"({"messages": [{"role": "user", "content": "hi"}]})");
  EXPECT_EQ(rendered.json().at("text").as_string(),
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n");
  const Finished refused = run({"eval", "render"}, R"({"messages": []})");
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("No messages"), std::string::npos) << refused.err;
}

TEST_F(EvalVerbs, LogitsThatAreNoNumbersAreAFailure) {
  const std::string minnow = SLIP_SOURCE_DIR "/models/minnow/";
  const std::string name = "model-00001-of-00002.safetensors";
  for (const auto& entry : std::filesystem::directory_iterator(minnow))
    if (entry.path().filename() != name)
      std::filesystem::create_symlink(entry.path(), folder_.path() / entry.path().filename());
  std::string shard = read_text_file(minnow + name).value();
  uint64_t length = 0;
  std::memcpy(&length, shard.data(), sizeof(length));
  const Json header = parse_json(std::string_view(shard).substr(8, length), name).value();
  const JsonObject& norm = header.at("model.language_model.norm.weight").get_object();
  const int64_t begin = norm.at("data_offsets").at(0).as_int64();
  // Numbers, which a loader must take, but products of them are none.
  for (size_t i = 0; i < 64; ++i) shard.replace(8 + length + size_t(begin) + 2 * i, 2, "\x7f\x7f");
  folder_.write(name, shard);
  const std::string model = folder_.path().string();
  const std::vector<std::vector<std::string>> verbs = {
      {"run", "-m", model, "--ids", ids_, "--greedy", "-n", "4", "--json"},
      {"eval", "ppl", "-m", model, "--ids", ids_, "--json"},
      {"eval", "logits", "-m", model, "--ids", ids_, "--out", out_},
      {"eval", "kl", "-m", model, "--ids", ids_},
      {"eval", "accept", "-m", model, "--ids", ids_}};
  for (const std::vector<std::string>& verb : verbs) {
    const Finished done = run(verb);
    EXPECT_EQ(done.status, 1) << verb[0] << " " << verb[1];
    EXPECT_EQ(done.out, "");
    EXPECT_NE(done.err.find("logits are not numbers"), std::string::npos) << done.err;
  }
  EXPECT_FALSE(std::filesystem::exists(out_));
}

TEST_F(EvalVerbs, TheAdviceFitsWhatWasAsked) {
  const auto told = [&](std::vector<std::string> verb) { return run(verb).err; };
  const std::string window = told({"eval", "ppl", "--ids", ids_, "--window", "100000"});
  EXPECT_NE(window.find("; --window sets"), std::string::npos) << window;
  EXPECT_EQ(window.find("--ctx"), std::string::npos) << window;
  const std::string depth = told({"bench", "-d", "40000"});
  EXPECT_NE(depth.find("; -p, -n and -d set"), std::string::npos) << depth;
  const std::string negative = told({"eval", "ppl", "--ids", folder_.write("n.json", "[-1]")});
  EXPECT_NE(negative.find("from 0 on, found -1"), std::string::npos) << negative;
  const Finished unknown = run({"eval", "detokenize"}, "[1, 2, 999999]");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.err.find("there is no token 999999: the vocabulary has"), std::string::npos);
  const Finished bias = run({"run", "x", "--logit-bias", "99999=1"});
  EXPECT_EQ(bias.status, 1);
  EXPECT_NE(bias.err.find("--logit-bias 99999=1: the model has 8192 tokens"), std::string::npos);
}

// Nobody should measure for an hour and then lose the result.
TEST_F(EvalVerbs, WhereAResultGoesIsLookedAtFirst) {
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"bench", "--save", "/no/such/x.json"},
        {"bench", "ladder", "--svg", "/no/such/x.svg"},
        {"bench", "serve", "--url", "http://127.0.0.1:1", "--save", "/no/such/x.json"}}) {
    const Finished done = run(verb);
    EXPECT_EQ(done.status, 1);
    EXPECT_NE(done.err.find(": cannot be written: there is no folder /no/such"), std::string::npos)
        << done.err;
    EXPECT_EQ(done.err.find("loading"), std::string::npos) << done.err;
  }
}

TEST_F(EvalVerbs, BadIdsAreNamed) {
  const std::string beyond = folder_.write("beyond.json", "[1, 9000]");
  const Finished refused = run({"eval", "logits", "--ids", beyond, "--out", out_});
  EXPECT_EQ(refused.status, 1);
  EXPECT_NE(refused.err.find("9000"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(out_));
  const Finished text = run({"eval", "ppl", "--ids", folder_.write("README.md", "# Words")});
  EXPECT_EQ(text.status, 1);
  EXPECT_NE(text.err.find("as slipstream eval tokenize makes it"), std::string::npos) << text.err;
  const Finished nowhere =
      run({"eval", "logits", "--ids", ids_, "--out", "/no/such/x.safetensors"});
  EXPECT_NE(
      nowhere.err.find("/no/such/x.safetensors: cannot be written: there is no folder /no/such"),
      std::string::npos)
      << nowhere.err;
}

TEST_F(EvalVerbs, BenchPrintsRowsAndTheMachine) {
  const Finished bench = run({"bench", "--json", "-p", "8", "-n", "4", "-d", "0,16", "-r", "1"});
  ASSERT_EQ(bench.status, 0) << bench.err;
  const JsonObject report = bench.json();
  const JsonArray& rows = report.at("rows").as_array();
  ASSERT_EQ(rows.size(), 4u);
  const JsonObject& decode = rows[3].as_object();
  EXPECT_EQ(decode.at("test").as_string(), "tg4");
  EXPECT_EQ(decode.at("depth").as_int64(), 16);
  for (const char* key : {"tokens_per_second", "bytes_per_step", "gb_per_s", "share_of_bandwidth"})
    EXPECT_GT(decode.at(key).to_number<double>(), 0) << key;
  // Prompts share their weights, so they have no bytes of their own.
  for (const char* key : {"bytes_per_step", "gb_per_s", "share_of_bandwidth"})
    EXPECT_TRUE(rows[0].as_object().at(key).is_null()) << key;
  EXPECT_GT(report.at("machine").at("read_bandwidth_gb_per_s").as_double(), 0);
}

}  // namespace
}  // namespace slip::e2e
