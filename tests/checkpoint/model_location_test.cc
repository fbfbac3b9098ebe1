#include "checkpoint/model_location.h"

#include "tests/checkpoint/test_files.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRepo = "models--Qwen--Qwen3.5-35B";

// A cache with one model, two snapshots and two branches.
struct Cache {
  TempFolder folder;
  LocationOptions options{{folder.path() / "absent", folder.path()}};
  fs::path repo = folder.path() / "hub" / kRepo;

  Cache() {
    folder.write(repo / "refs/main", "aaa111\n");
    folder.write(repo / "refs/refs/pr/1", "bbb222");
    folder.write(repo / "refs/gone", "ccc333");
    folder.write(repo / "refs/evil", "../../..");
    fs::create_directories(repo / "snapshots/aaa111");
    fs::create_directories(repo / "snapshots/bbb222");
  }
};

TEST(FindModel, AFolderIsTakenAsItIs) {
  const TempFolder folder;
  const auto found = find_model(folder.path().string(), {});
  ASSERT_TRUE(found.ok()) << found.failure().message;
  EXPECT_EQ(found.value(), folder.path());
}

TEST(FindModel, AFileIsRefused) {
  const TempFolder folder;
  const auto file = folder.write("model.safetensors", "x");
  expect_error(find_model(file.string(), {}), {file.string(), "is a file", "expected the folder"});
}

TEST(FindModel, LooksIntoTheCache) {
  const Cache cache;
  const auto expect_found = [&](const std::string& name, const char* commit) {
    const auto found = find_model(name, cache.options);
    ASSERT_TRUE(found.ok()) << found.failure().message;
    EXPECT_EQ(found.value(), cache.repo / "snapshots" / commit);
  };
  expect_found("Qwen/Qwen3.5-35B", "aaa111");
  expect_found("Qwen/Qwen3.5-35B@main", "aaa111");
  expect_found("Qwen/Qwen3.5-35B@bbb222", "bbb222");
  expect_found("Qwen/Qwen3.5-35B@refs/pr/1", "bbb222");
  const auto hub = find_model("Qwen/Qwen3.5-35B", {{cache.folder.path() / "hub"}});
  ASSERT_TRUE(hub.ok()) << hub.failure().message;
}

TEST(FindModel, SaysWhereItLookedAndHowToGetIt) {
  const Cache cache;
  expect_error(find_model("Qwen/Other", cache.options),
               {"Qwen/Other", (cache.folder.path() / "hub/models--Qwen--Other").string(),
                (cache.folder.path() / "absent/models--Qwen--Other").string(),
                "slipstream pull Qwen/Other"});
  expect_error(find_model("Qwen/Other", {}), {"no cache folder is known"});
  expect_error(find_model("Qwen/Qwen3.5-35B@v9", cache.options),
               {cache.repo.string(), "no revision v9", "slipstream pull", "@v9"});
  expect_error(find_model("Qwen/Qwen3.5-35B@gone", cache.options),
               {"snapshots/ccc333", "no such folder", "refs/gone"});
}

TEST(FindModel, RefusesNamesThatLeaveTheCache) {
  const Cache cache;
  for (const char* name : {"", "nothing-here", "../secret", "a/..", "a/b/c", "a/b@../..", "a/b@",
                           "a b/c", "/no/such/folder"})
    expect_error(find_model(name, cache.options), {name, "no such folder", "org/name[@revision]"});
  expect_error(find_model("Qwen/Qwen3.5-35B@evil", cache.options),
               {"refs/evil", "expected the name of a commit"});
}

}  // namespace
}  // namespace slip
