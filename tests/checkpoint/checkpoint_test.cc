#include "checkpoint/checkpoint.h"

#include <unistd.h>

#include <chrono>

#include "tests/checkpoint/test_files.h"

namespace slip {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A file whose tensors hold `fill` instead of 0, 1, 2, ..., to tell copies apart.
std::string weights_filled(std::initializer_list<std::string_view> names, char fill) {
  std::string file = weights_file(names);
  file.replace(file.size() - 4 * names.size(), 4 * names.size(), 4 * names.size(), fill);
  return file;
}

std::string index_of(std::initializer_list<std::pair<std::string_view, std::string_view>> entries) {
  std::string text;
  for (const auto& [tensor, file] : entries)
    text += cat(text.empty() ? "" : ",", "\"", tensor, "\":\"", file, "\"");
  return cat("{\"metadata\":{},\"weight_map\":{", text, "}}");
}

Checkpoint open(const TempFolder& folder) {
  auto result = Checkpoint::open(folder.path());
  check(result.ok(), result.ok() ? "" : result.failure().message);
  return std::move(result).value();
}

std::vector<std::string> names_of(const Checkpoint& checkpoint) {
  std::vector<std::string> names;
  for (const StoredTensor& tensor : checkpoint.tensors()) names.push_back(tensor.name);
  return names;
}

char first_byte(const Checkpoint& checkpoint, std::string_view name) {
  const StoredTensor* tensor = checkpoint.find(name);
  check(tensor != nullptr, name);
  return char(tensor->data[0]);
}

TEST(Checkpoint, FindsTensorsOfOneFile) {
  const TempFolder folder;
  folder.write("model.safetensors", weights_file({"b", "a"}));
  Checkpoint first = open(folder);
  const Checkpoint checkpoint = std::move(first);  // tensors must survive the move
  EXPECT_THAT(names_of(checkpoint), ElementsAre("a", "b"));
  EXPECT_THAT(checkpoint.notes(), IsEmpty());
  EXPECT_EQ(checkpoint.total_bytes(), 8u);
  const StoredTensor* a = checkpoint.find("a");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->type, StoredType::u8);
  EXPECT_EQ(a->shape, (std::vector<int64_t>{4}));
  EXPECT_EQ(a->data.size(), 4u);
  EXPECT_EQ(char(a->data[0]), 4);  // the second tensor of the file
  EXPECT_EQ(a->path(), folder.path() / "model.safetensors");
  EXPECT_EQ(checkpoint.find("c"), nullptr);
  EXPECT_EQ(checkpoint.find(""), nullptr);
  checkpoint.drop_pages(*a, a->data);
  EXPECT_EQ(char(a->data[3]), 7);
}

TEST(Checkpoint, FindsTensorsThatTheIndexDoesNotList) {
  const TempFolder folder;
  folder.write("model-00001-of-00001.safetensors", weights_file({"model.a"}));
  folder.write("model_extra_tensors.safetensors", weights_file({"mtp.fc", "mtp.norm"}));
  folder.write("model.safetensors.index.json",
               index_of({{"model.a", "model-00001-of-00001.safetensors"}}));
  folder.write("model.safetensors.index.with_mtp.json", "not JSON, and not looked at");
  const Checkpoint checkpoint = open(folder);
  EXPECT_THAT(names_of(checkpoint), ElementsAre("model.a", "mtp.fc", "mtp.norm"));
  EXPECT_THAT(checkpoint.notes(),
              ElementsAre("2 tensors (mtp.*) are in model_extra_tensors.safetensors but not in the "
                          "index; used all the same"));
}

TEST(Checkpoint, TheIndexDecidesBetweenCopies) {
  const TempFolder folder;
  folder.write("model-1.safetensors", weights_filled({"x", "y"}, 'A'));
  folder.write("model-2.safetensors", weights_filled({"x", "z"}, 'B'));
  folder.write("model.safetensors.index.json", index_of({{"x", "model-1.safetensors"},
                                                         {"y", "model-1.safetensors"},
                                                         {"z", "model-2.safetensors"}}));
  const Checkpoint checkpoint = open(folder);
  EXPECT_EQ(first_byte(checkpoint, "x"), 'A');
  EXPECT_EQ(checkpoint.total_bytes(), 12u);
  EXPECT_THAT(checkpoint.notes(),
              ElementsAre("1 tensor (x) is in both model-1.safetensors and model-2.safetensors; "
                          "used from model-1.safetensors, as the index says"));
}

TEST(Checkpoint, WithoutAnIndexTheLastFileWins) {
  const TempFolder folder;
  folder.write("model-1.safetensors", weights_filled({"x", "y"}, 'A'));
  folder.write("model-2.safetensors", weights_filled({"x", "z"}, 'B'));
  const Checkpoint checkpoint = open(folder);
  EXPECT_THAT(names_of(checkpoint), ElementsAre("x", "y", "z"));
  EXPECT_EQ(first_byte(checkpoint, "x"), 'B');
  EXPECT_THAT(checkpoint.notes(),
              ElementsAre("1 tensor (x) is in both model-2.safetensors and model-1.safetensors; "
                          "used from model-2.safetensors, the last by name"));
}

TEST(Checkpoint, AStrayCopyBesideIndexedShardsIsLeftAlone) {
  const TempFolder folder;
  folder.write("model-00001-of-00001.safetensors", weights_filled({"m.x", "m.y"}, 'A'));
  folder.write("model.safetensors", weights_filled({"m.x", "m.y"}, 'B'));
  folder.write("model.safetensors.index.json",
               index_of({{"m.x", "model-00001-of-00001.safetensors"},
                         {"m.y", "model-00001-of-00001.safetensors"}}));
  const Checkpoint checkpoint = open(folder);
  EXPECT_EQ(first_byte(checkpoint, "m.x"), 'A');
  EXPECT_EQ(first_byte(checkpoint, "m.y"), 'A');
  EXPECT_THAT(checkpoint.notes(), ElementsAre(HasSubstr("2 tensors (m.*) are in both")));
}

TEST(Checkpoint, ATensorInAnotherFileThanTheIndexSaysIsUsed) {
  const TempFolder folder;
  folder.write("model-1.safetensors", weights_filled({"x"}, 'A'));
  folder.write("model-2.safetensors", weights_filled({"y"}, 'B'));
  folder.write("model.safetensors.index.json",
               index_of({{"x", "model-1.safetensors"}, {"y", "model-1.safetensors"}}));
  const Checkpoint checkpoint = open(folder);
  EXPECT_EQ(first_byte(checkpoint, "y"), 'B');
  EXPECT_THAT(checkpoint.notes(), ElementsAre("1 tensor (y) is in model-2.safetensors, not in "
                                              "model-1.safetensors as the index says; used all the "
                                              "same"));
}

TEST(Checkpoint, ATensorOfTheIndexThatNoFileHoldsIsAnError) {
  for (const char* absent : {"a", "xx", "z"}) {
    const TempFolder folder;
    folder.write("model-1.safetensors", weights_file({"x", "y"}));
    folder.write("model.safetensors.index.json",
                 index_of({{"x", "model-1.safetensors"}, {absent, "model-1.safetensors"}}));
    expect_error(Checkpoint::open(folder.path()),
                 {folder.path().string(), "model-1.safetensors", cat("tensor \"", absent, "\""),
                  "expected in this file", "found in no file"});
  }
}

TEST(Checkpoint, OtherFilesAreNotTheModel) {
  const TempFolder folder;
  folder.write("model.safetensors", weights_file({"w"}));
  folder.write("consolidated.00.safetensors", "broken, and not looked at");
  folder.write("adapter_model.safetensors", "broken, and not looked at");
  folder.write("._model.safetensors", "broken, and not looked at");
  folder.write(
      "golden.safetensors",
      safetensors_file(R"({"logits":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  folder.write("vision.safetensors", weights_file({"visual.w"}));
  const Checkpoint checkpoint = open(folder);
  EXPECT_THAT(names_of(checkpoint), ElementsAre("visual.w", "w"));
  EXPECT_THAT(checkpoint.notes(),
              ElementsAre("adapter_model.safetensors is not part of the model; not used",
                          "consolidated.00.safetensors is not part of the model; not used",
                          HasSubstr("golden.safetensors has no format")));
}

TEST(Checkpoint, ALoneFileMayHaveAnyName) {
  const TempFolder folder;
  folder.write("w.safetensors",
               safetensors_file(R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1));
  EXPECT_THAT(names_of(open(folder)), ElementsAre("w"));
}

TEST(Checkpoint, AFolderWithOnlyAnAdapterIsAnError) {
  const TempFolder folder;
  folder.write("adapter_model.safetensors", weights_file({"w"}));
  expect_error(Checkpoint::open(folder.path()),
               {folder.path().string(), "expected a model's weights", "adapter_model.safetensors"});
}

TEST(Checkpoint, WrongPathsAreErrors) {
  const TempFolder folder;
  expect_error(Checkpoint::open(folder.path()),
               {folder.path().string(), "no .safetensors files", "expected", "an empty folder"});
  const auto file = folder.write("model.gguf", "x");
  expect_error(Checkpoint::open(folder.path()), {folder.path().string(), "\"model.gguf\""});
  expect_error(Checkpoint::open(file), {file.string(), "is a file", "expected the folder"});
  const auto nowhere = folder.path() / "nowhere";
  expect_error(Checkpoint::open(nowhere), {nowhere.string(), "no such folder"});
}

TEST(Checkpoint, MissingShardsAreErrors) {
  const TempFolder folder;
  folder.write("model-00001-of-00003.safetensors", weights_file({"a"}));
  folder.write("model-00003-of-00003.safetensors", weights_file({"c"}));
  const std::string missing = (folder.path() / "model-00002-of-00003.safetensors").string();
  expect_error(Checkpoint::open(folder.path()), {missing, "missing", "expected 3", "found 2"});
  folder.write("model.safetensors.index.json",
               index_of({{"a", "model-00001-of-00003.safetensors"},
                         {"b", "model-00002-of-00003.safetensors"}}));
  expect_error(Checkpoint::open(folder.path()), {missing, "missing, but named in", "index.json"});
  folder.write("model-00002-of-00003.safetensors", weights_file({"b"}));
  EXPECT_THAT(names_of(open(folder)), ElementsAre("a", "b", "c"));
}

TEST(Checkpoint, ShardNumbersAreNotTrusted) {
  const TempFolder folder;
  folder.write("model-00001-of-99999999999999999999.safetensors", weights_file({"a"}));
  folder.write("model-x-of-2.safetensors", weights_file({"b"}));
  folder.write("-of-.safetensors", weights_file({"c"}));
  EXPECT_THAT(names_of(open(folder)), ElementsAre("a", "b", "c"));
  folder.write("model-1-of-9999999999.safetensors", weights_file({"d"}));
  expect_error(Checkpoint::open(folder.path()), {"model-2-of-9999999999.safetensors: missing"});
}

TEST(Checkpoint, FollowsLinksAsInTheHubCache) {
  const TempFolder folder;
  folder.write("blobs/0123", weights_file({"w"}));
  fs::create_directories(folder.path() / "snapshots/abc");
  const fs::path link = folder.path() / "snapshots/abc/model.safetensors";
  fs::create_symlink("../../blobs/0123", link);
  const auto checkpoint = Checkpoint::open(folder.path() / "snapshots/abc");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.failure().message;
  EXPECT_NE(checkpoint.value().find("w"), nullptr);

  fs::remove(folder.path() / "blobs/0123");
  expect_error(Checkpoint::open(folder.path() / "snapshots/abc"),
               {link.string(), "No such file", "link to ../../blobs/0123"});
}

TEST(Checkpoint, BrokenLinksAreErrors) {
  const TempFolder folder;
  const fs::path a = folder.path() / "model-a.safetensors";
  const fs::path b = folder.path() / "model-b.safetensors";
  fs::create_symlink(a, b);
  fs::create_symlink(b, a);
  expect_error(Checkpoint::open(folder.path()), {a.string(), "loop"});
  const fs::path loop = folder.path() / "loop";
  fs::create_symlink(loop, loop);
  expect_error(Checkpoint::open(loop), {loop.string(), "cannot open"});
}

TEST(Checkpoint, ADanglingIndexIsAnError) {
  const TempFolder folder;
  folder.write("model.safetensors", weights_file({"w"}));
  const fs::path index = folder.path() / "model.safetensors.index.json";
  fs::create_symlink("../nowhere", index);
  expect_error(Checkpoint::open(folder.path()), {index.string(), "cannot open"});
}

TEST(Checkpoint, UnreadableFilesAreErrors) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can read everything";
  const TempFolder folder;
  const auto path = folder.write("model.safetensors", weights_file({"w"}));
  fs::permissions(path, fs::perms::none);
  expect_error(Checkpoint::open(folder.path()), {path.string(), "Permission denied"});
}

TEST(Checkpoint, BrokenFilesAreNamed) {
  const TempFolder folder;
  const auto good = folder.write("model-1.safetensors", weights_file({"a"}));
  const auto bad = folder.write("model-2.safetensors", weights_file({"b", "c"}).substr(0, 150));
  expect_error(Checkpoint::open(folder.path()), {bad.string(), "truncated"});
  folder.write("model-2.safetensors", "");
  expect_error(Checkpoint::open(folder.path()), {bad.string(), "truncated", "found 0"});
  fs::remove(bad);
  fs::create_directory(bad);
  expect_error(Checkpoint::open(folder.path()), {bad.string(), "not a regular file"});
  fs::remove(bad);
  const auto index = folder.write("model.safetensors.index.json", "[]");
  expect_error(Checkpoint::open(folder.path()), {index.string(), "the file is a list"});
  folder.write("model.safetensors.index.json", index_of({{"a", "../model-1.safetensors"}}));
  expect_error(Checkpoint::open(folder.path()),
               {index.string(), "tensor \"a\"", "../model-1.safetensors"});
}

// The 122B checkpoints have 113,000 tensors. This takes 0.1 s in a release build; the bound is for
// debug builds with sanitizers on a busy machine and catches what is worse than n log n.
TEST(Checkpoint, OpensManyTensorsQuickly) {
  const TempFolder folder;
  constexpr int kFiles = 4, kPerFile = 28'000;
  std::string index = "{\"weight_map\":{";
  for (int file = 0; file < kFiles; ++file) {
    std::string header = "{";
    const std::string file_name = cat("model-", file, ".safetensors");
    for (int i = 0; i < kPerFile; ++i) {
      const std::string name =
          cat("model.language_model.layers.", file, ".mlp.experts.", i, ".gate_proj.qweight");
      header += cat(i ? "," : "", "\"", name, R"(":{"dtype":"U8","shape":[1,1],"data_offsets":[)",
                    i, ",", i + 1, "]}");
      index += cat(file + i ? "," : "", "\"", name, "\":\"", file_name, "\"");
    }
    folder.write(file_name, safetensors_file(header + "}", kPerFile));
  }
  folder.write("model.safetensors.index.json", index + "}}");

  const auto begin = std::chrono::steady_clock::now();
  const Checkpoint checkpoint = open(folder);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  RecordProperty("seconds", cat(seconds));
  EXPECT_EQ(checkpoint.tensors().size(), size_t(kFiles) * kPerFile);
  EXPECT_THAT(checkpoint.notes(), IsEmpty());
  EXPECT_LT(seconds, 20);
  const StoredTensor* tensor =
      checkpoint.find("model.language_model.layers.3.mlp.experts.27999.gate_proj.qweight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(uint8_t(tensor->data[0]), uint8_t(27'999));
}

}  // namespace
}  // namespace slip
