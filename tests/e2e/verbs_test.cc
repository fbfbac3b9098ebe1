// inspect, doctor, completions and --help.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/files.h"
#include "tests/e2e/process.h"

namespace slip::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Inspect, DescribesMinnow) {
  const Finished done = run({"inspect"});
  EXPECT_EQ(done.status, 0);
  for (const char* part : {"qwen3_5_moe", "6 delta net, 2 attention", "routed experts", "int4",
                           "int8 activations", "not in the index", "4,096"})
    EXPECT_THAT(done.out, HasSubstr(part));
  const JsonObject object = run({"inspect", "minnow", "--json"}).json();
  EXPECT_TRUE(object.at("mtp").as_bool());
  const auto parameters = object.at("parameters").to_number<int64_t>() +
                          object.at("mtp_parameters").to_number<int64_t>();
  EXPECT_NEAR(double(parameters), 38.7e6, 0.05e6);  // as its card says
  // Everything in the three files but their headers.
  EXPECT_NEAR(double(object.at("stored_bytes").to_number<int64_t>()), 37.8e6, 0.2e6);
}

TEST(Inspect, TakesOneModel) {
  const Finished twice = run({"inspect", "minnow", "-m", "other"});
  EXPECT_EQ(twice.status, 2);
  EXPECT_THAT(twice.err, HasSubstr("given twice"));
}

TEST(Inspect, KnowsPublishedShapes) {
  const JsonObject object = run({"inspect", "qwen3.5-122b-a10b", "--json"}).json();
  EXPECT_NEAR(object.at("parameters").to_number<double>(), 122e9, 1e9);
  EXPECT_NEAR(object.at("active_parameters").to_number<double>(), 9.5e9, 0.6e9);
  EXPECT_EQ(object.at("memory").as_array().size(), 3u);
}

TEST(Inspect, RefusesBrokenCheckpoints) {
  const TemporaryFolder folder;
  const Finished empty = run({"inspect", folder.path().string()});
  EXPECT_EQ(empty.status, 1);
  EXPECT_THAT(empty.err, HasSubstr("config.json"));
  for (const auto& entry : std::filesystem::directory_iterator(SLIP_SOURCE_DIR "/models/minnow"))
    std::filesystem::create_symlink(entry.path(), folder.path() / entry.path().filename());
  const std::filesystem::path shard = folder.path() / "model-00002-of-00002.safetensors";
  std::filesystem::remove(shard);
  const Finished missing = run({"inspect", folder.path().string()});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("model-00002-of-00002.safetensors"));
  std::ofstream(shard) << "not a safetensors file";
  const Finished broken = run({"inspect", folder.path().string()});
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.err, HasSubstr("model-00002-of-00002.safetensors"));
}

TEST(Inspect, AFileIsNotComparedWithShapes) {
  const Finished done = run({"inspect", SLIP_SOURCE_DIR "/README.md"});
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.err, HasSubstr("is a file"));
  EXPECT_THAT(done.err, Not(HasSubstr("shape")));
}

TEST(Inspect, AHeadThatIsNotUsedIsNamed) {
  const TemporaryFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(SLIP_SOURCE_DIR "/models/minnow"))
    if (entry.path().filename() != "config.json")
      std::filesystem::create_symlink(entry.path(), folder.path() / entry.path().filename());
  const std::string config = read_text_file(SLIP_SOURCE_DIR "/models/minnow/config.json").value();
  const auto notes = [&](const char* tied) {
    JsonObject changed = parse_json(config, "config.json").value().get_object();
    changed["tie_word_embeddings"] = std::string_view(tied) == "true";
    changed["text_config"].as_object().erase("tie_word_embeddings");
    folder.write("config.json", dump_json(changed));
    return run({"inspect", folder.path().string()}).out;
  };
  EXPECT_THAT(notes("true"), HasSubstr("lm_head in the files, which is another, is not used"));
  EXPECT_THAT(notes("false"), Not(HasSubstr("is not used")));
}

TEST(Inspect, ANameThatIsNothingIsComparedWithShapesToo) {
  for (const std::vector<std::string>& line : {std::vector<std::string>{"inspect", "qwen3.5-99b"},
                                               {"bench", "qwen3.5-99b"},
                                               {"bench", "ops", "qwen3.5-99b"}}) {
    const Finished done = run(line);
    EXPECT_EQ(done.status, 1);
    EXPECT_THAT(done.err, HasSubstr("nor a shape; those are "));
    EXPECT_THAT(done.err, HasSubstr("qwen3.5-122b-a10b"));
  }
}

TEST(Doctor, LooksAtTheFilesOfAModel) {
  const TemporaryFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(SLIP_SOURCE_DIR "/models/minnow"))
    std::filesystem::copy(entry.path(), folder.path() / entry.path().filename());
  const std::string model = folder.path().string();
  EXPECT_TRUE(
      run({"doctor", "-m", model, "--json"}).json().at("model").as_object().at("works").as_bool());
  const std::filesystem::path shard = folder.path() / "model-00002-of-00002.safetensors";
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) / 2);
  const Finished done = run({"doctor", "-m", model});
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.out, HasSubstr("model-00002-of-00002.safetensors"));
  EXPECT_THAT(done.out, HasSubstr("truncated"));
}

TEST(Doctor, AModelThatIsNotThereIsAProblem) {
  const Finished done = run({"doctor", "-m", "/nonexistent"});
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.out, HasSubstr("/nonexistent"));
}

TEST(Doctor, ChecksTheMachine) {
  const JsonObject object = run({"doctor", "--json"}).json();
  EXPECT_TRUE(object.at("default_model").as_object().at("works").as_bool());
  EXPECT_GT(object.at("all_threads").as_object().at("read_gb_per_s").to_number<double>(), 0.1);
  EXPECT_GT(object.at("disk").as_object().at("gb_per_s").to_number<double>(), 0);
  EXPECT_TRUE(object.contains("problems"));
  const JsonObject& gpu = object.at("gpu").as_object();
  EXPECT_NE(gpu.at("usable").as_bool(), gpu.at("description").as_string().empty());
}

TEST(Completions, AreScriptsThatShellsAccept) {
  EXPECT_EQ(shell("\"$SLIP\" completions bash | bash -n").status, 0);
  // What bash would offer after `slipstream run --gr` and `slipstream ev`.
  const Finished offered = shell(
      "source <(\"$SLIP\" completions bash)\n"
      "COMP_WORDS=(slipstream run --gr) COMP_CWORD=2; _slipstream; echo \"${COMPREPLY[@]}\"\n"
      "COMP_WORDS=(slipstream ev) COMP_CWORD=1; _slipstream; echo \"${COMPREPLY[@]}\"\n"
      "COMP_WORDS=(slipstream eval log) COMP_CWORD=2; _slipstream; echo \"${COMPREPLY[@]}\"\n"
      "COMP_WORDS=(slipstream eval logits --ou) COMP_CWORD=3; _slipstream; "
      "echo \"${COMPREPLY[@]}\"");
  EXPECT_EQ(offered.out, "--greedy\neval\nlogits\n--out\n") << offered.err;
  for (const std::string other : {"zsh", "fish"}) {
    const Finished done = run({"completions", other});
    EXPECT_EQ(done.status, 0);
    EXPECT_THAT(done.out, HasSubstr("greedy"));
    // Where the shell is installed, let it judge.
    EXPECT_EQ(shell("if command -v " + other + " >/dev/null; then \"$SLIP\" completions " + other +
                    " > /tmp/slip-completions-$$ && " + other +
                    " -n /tmp/slip-completions-$$; fi; rm -f /tmp/slip-completions-$$")
                  .status,
              0);
  }
  EXPECT_EQ(run({"completions"}).status, 2);
  EXPECT_THAT(run({"completions"}).err, HasSubstr("name a shell: bash, zsh or fish"));
  EXPECT_EQ(run({"completions", "tcsh"}).status, 2);
}

TEST(Help, EveryVerbHasIt) {
  for (const std::string verb : {"run", "inspect", "doctor", "completions", "bench"}) {
    const Finished done = run({verb, "--help"});
    EXPECT_EQ(done.status, 0) << verb;
    EXPECT_THAT(done.out, HasSubstr("Usage: slipstream " + verb));
    EXPECT_EQ(done.err, "");
  }
}

TEST(Help, TheFirstWordOfSeveralVerbsListsThem) {
  const Finished asked = run({"convert", "--help"});
  EXPECT_EQ(asked.status, 0);
  EXPECT_THAT(asked.out, HasSubstr("Usage: slipstream convert WHAT"));
  EXPECT_THAT(asked.out, HasSubstr("convert hybrid"));
  EXPECT_EQ(asked.err, "");
  const Finished alone = run({"eval"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_THAT(alone.err, HasSubstr("eval logits"));
  const Finished wrong = run({"eval", "logit"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("not \"logit\""));
  EXPECT_THAT(run({"evil"}).err, HasSubstr("there is no verb \"evil\""));
}

// Wrong command lines are told from work that failed.
TEST(Help, WrongCommandLinesHaveAStatusOfTheirOwn) {
  const std::vector<std::vector<std::string>> wrong = {
      {"eval", "logits"},
      {"eval", "needle", "--trials", "0"},
      {"convert", "int4"},
      {"convert", "hybrid", "--int4", "a"},
      {"convert", "check"},
      {"bench", "--repeat", "0"},
      {"bench", "minnow", "-m", "other"},
      {"bench", "ops", "--rows", "0"},
      {"pull", "nowhere"},
      {"pull", "-q"},
      {"run", "-t", "0"},
      {"serve", "--ctx", "-5"},
      {"eval", "logits", "--last", "0"},
      {"eval", "ppl", "--memory", "10G5"},
      {"run", "--kv-cache", "k5v5"},
      {"inspect", "--kv-cache", "k5v5"},
      {"eval", "kl", "--against", "xyz"},
      {"bench", "--ops", "ref", "--device", "cuda"},
      {"bench", "--synthetic"},
      {"bench", "-p", "", "-n", ""},
      {"bench", "--json", "--output", "csv"},
      {"bench", "ops", "--repeat", "0"},
      {"bench", "ops", "--depth", "-5"},
      {"bench", "context", "--tokens", "lots"},
      {"bench", "serve", "-r", "0"},
      {"bench", "ladder", "--device", "gpu"},
      {"convert", "int4", "--threads", "0"},
      {"run", "-m", "a", "--from-huggingface-repo", "b/c"},
      {"run", "-n", "5x"},
      {"run", "--seed", "18446744073709551616"},
      {"run", "--temperature", "nan"},
      {"run", "--logit-bias", "5=nan"},
      {"run", "--logit-bias", "5=101"},
      {"run", "--speculate", "100"}};
  for (const std::vector<std::string>& arguments : wrong) {
    const Finished done = run(arguments);
    EXPECT_EQ(done.status, 2) << arguments[0] << " " << arguments[1] << ": " << done.err;
    EXPECT_THAT(done.err, HasSubstr("; see slipstream " + arguments[0]));
  }
}

TEST(Help, NumbersAreWhatPeopleWrite) {
  const JsonObject eight =
      run({"run", "--prompt", "x", "--raw", "--ignore-eos", "-n", "010", "--json"}).json();
  EXPECT_EQ(eight.at("token_ids").as_array().size(), 10u);
  EXPECT_THAT(run({"run", "-n", "5x"}).err,
              HasSubstr("--max-tokens: expects a whole number of at most 63 bits, not \"5x\""));
  EXPECT_THAT(run({"run", "--speculate", "100"}).err, HasSubstr("drafts up to 8 tokens, not 100"));
}

TEST(Help, FitsATerminal) {
  for (const std::string verb : {"", "run", "serve", "bench", "bench context", "convert int4",
                                 "convert hybrid", "eval kl"}) {
    const Finished help = shell("$SLIP " + verb + " --help | awk 'length > 80'");
    EXPECT_EQ(help.out, "") << verb;
  }
}

// Exit status 0 means that it worked.
TEST(Help, OutputThatGoesNowhereIsAFailure) {
  for (const std::string verb : {"--help", "--version", "run --help", "convert --help",
                                 "eval tokenize", "inspect --json", "completions bash"}) {
    const Finished full = shell("$SLIP " + verb + " > /dev/full");
    EXPECT_EQ(full.status, 1) << verb;
    EXPECT_THAT(full.err, HasSubstr("slipstream: standard output: ")) << verb;
    EXPECT_EQ(shell("$SLIP " + verb + " | true; exit ${PIPESTATUS[1]}").status, 0) << verb;
  }
}

TEST(Help, DevicesMustBeNamedExactly) {
  for (const char* device : {"cudafoo", "cuda:", "cuda:abc", "cuda:-1", "cuda:0x", "gpu"}) {
    const Finished done = run({"run", "--device", device, "--prompt", "x", "-n", "1"});
    EXPECT_EQ(done.status, 2) << device;
    EXPECT_THAT(done.err, HasSubstr("--device is auto, cpu or cuda:N")) << device;
  }
}

}  // namespace
}  // namespace slip::e2e
