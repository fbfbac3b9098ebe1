// What a pull leaves behind, and what it asks a hub for.
#include <fcntl.h>

#include <fstream>
#include <thread>

#include "base/clock.h"
#include "tests/hub/pull_fixture.h"

namespace slip {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class Pull : public PullFixture {};

TEST_F(Pull, MakesTheLayoutThatOtherProgramsExpect) {
  expect_complete();
  EXPECT_EQ(fs::read_symlink(snapshot() / "model.safetensors"),
            fs::path("../../blobs") / hub_.oid("model.safetensors"));
  EXPECT_EQ(fs::read_symlink(snapshot() / "config.json"),
            fs::path("../../blobs") / hub_.oid("config.json"));
  EXPECT_EQ(read_text_file(repo_folder() / "refs/main").value(), hub_.commit());
  EXPECT_EQ(hub_.oid("config.json").size(), 40u);
  EXPECT_EQ(hub_.oid("model.safetensors").size(), 64u);
}

TEST_F(Pull, TakesWhatAModelNeedsAndNothingElse) {
  for (const char* name : {"README.md", "pytorch_model.bin", "onnx/model.json", "image.png",
                           "consolidated.safetensors", "weights.pt"})
    hub_.add(name, "unwanted", false);
  for (const char* name : {"chat_template.jinja", "merges.txt", "mtp.safetensors"})
    hub_.add(name, cat("wanted ", name), false);
  expect_complete();
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(snapshot()))
    names.push_back(entry.path().filename());
  EXPECT_THAT(names, testing::UnorderedElementsAre("config.json", "tokenizer.json", "merges.txt",
                                                   "model.safetensors", "mtp.safetensors",
                                                   "chat_template.jinja"));
}

TEST_F(Pull, IncludesAndExcludes) {
  hub_.add("sub/folder/deep.json", "deep", false);
  request_.files = {.include = {"*.json"}, .exclude = {"tok*"}};
  const auto result = try_pull();
  ASSERT_TRUE(result.ok()) << result.failure().message;
  EXPECT_EQ(read_text_file(snapshot() / "sub/folder/deep.json").value(), "deep");
  EXPECT_EQ(fs::read_symlink(snapshot() / "sub/folder/deep.json"),
            fs::path("../../../../blobs") / hub_.oid("sub/folder/deep.json"));
  EXPECT_FALSE(fs::exists(snapshot() / "tokenizer.json"));
  EXPECT_FALSE(fs::exists(snapshot() / "model.safetensors"));
  // Later the rest joins it.
  request_.files = {};
  expect_complete();
}

TEST_F(Pull, ShowsTheConfigurationBeforeTheRestIsFetched) {
  size_t storage_requests = 0;
  listener_.on_config = [&]() -> Status {
    for (const HubRequest& request : hub_.requests()) storage_requests += request.to_storage;
    return error("not for us");
  };
  expect_failure({"not for us"});
  EXPECT_THAT(listener_.configs, testing::ElementsAre("{\"model_type\": \"x\"} 3000000"));
  EXPECT_EQ(storage_requests, 0u);
  EXPECT_LT(hub_.bytes_sent(), 100'000u) << "more than config.json came";
  // With another answer it goes on, though the file is there already; of a model that is complete
  // nothing is asked.
  listener_.on_config = {};
  expect_complete();
  EXPECT_EQ(listener_.configs.size(), 2u);
  expect_complete();
  EXPECT_EQ(listener_.configs.size(), 2u);
}

TEST_F(Pull, NeverTakesPickles) {
  hub_.add("pytorch_model.bin", "evil", false);
  request_.files.include = {"*.bin"};
  expect_failure({"pytorch_model.bin", "pickle"});
  request_.files.include = {"*"};
  expect_complete();
  EXPECT_FALSE(fs::exists(snapshot() / "pytorch_model.bin"));
}

TEST_F(Pull, FetchesNothingTwice) {
  expect_complete();
  const uint64_t sent = hub_.bytes_sent();
  expect_complete();
  EXPECT_EQ(hub_.bytes_sent(), sent);
  EXPECT_EQ(listener_.plans.back().bytes_to_fetch, 0u);
}

TEST_F(Pull, SameContentUnderTwoNamesIsFetchedOnce) {
  hub_.add("model-copy.safetensors", shard_, true);
  expect_complete();
  EXPECT_EQ(hub_.bytes_sent(), shard_.size() + 100'000 + 19);
  EXPECT_EQ(read_text_file(snapshot() / "model-copy.safetensors").value().size(), shard_.size());
}

TEST_F(Pull, TakesEmptyFilesAndOddNames) {
  hub_.add("empty.json", "", false);
  hub_.add("with blank+plus%41.json", "odd", false);
  // The stand-in compares addresses as they come, so it must know this one as it is sent.
  hub_.on_request([](const HubRequest& request) {
    return request.is_for("blank") && !request.is_for("/api/")
               ? HubFault{.status = request.is_for("with%20blank%2Bplus%2541.json") ? 404 : 500}
               : HubFault{};
  });
  expect_failure({"with blank+plus%41.json", "404"});
  fs::remove_all(repo_folder());
  request_.files.exclude = {"with*"};
  expect_complete();
  EXPECT_EQ(fs::file_size(snapshot() / "empty.json"), 0u);
}

TEST_F(Pull, ReadsListsOfSeveralPages) {
  StandInHub paged({.files_per_page = 2});
  for (int i = 0; i < 7; ++i) paged.add(cat("file", i, ".json"), cat("content ", i), false);
  request_.hub.endpoint = paged.endpoint();
  const auto result = try_pull();
  ASSERT_TRUE(result.ok()) << result.failure().message;
  for (int i = 0; i < 7; ++i)
    EXPECT_EQ(read_text_file(snapshot() / cat("file", i, ".json")).value(), cat("content ", i));
}

TEST_F(Pull, AsksForPiecesAndSendsTheTokenToTheHubAlone) {
  request_.hub.token = "hf_secret";
  expect_complete();
  std::vector<std::string> ranges;
  for (const HubRequest& request : hub_.requests()) {
    EXPECT_EQ(request.header("authorization"), request.to_storage ? "" : "Bearer hf_secret")
        << request.target;
    if (request.to_storage) ranges.push_back(request.header("range"));
  }
  EXPECT_THAT(ranges, testing::UnorderedElementsAre("bytes=0-1048575", "bytes=1048576-2097151",
                                                    "bytes=2097152-2999999"));
}

TEST_F(Pull, RevisionsHaveTheirOwnRefs) {
  request_.repo = *parse_repo_id("org/model@refs/pr/1");
  expect_complete();
  EXPECT_EQ(read_text_file(repo_folder() / "refs/refs/pr/1").value(), hub_.commit());
  EXPECT_THAT(hub_.requests()[0].target, HasSubstr("/revision/refs%2Fpr%2F1"));
  request_.repo.revision = hub_.commit();
  expect_complete();
  EXPECT_FALSE(fs::exists(repo_folder() / "refs" / hub_.commit()));
}

TEST_F(Pull, VerifyFindsDamagedFiles) {
  expect_complete();
  {
    std::fstream blob(shard_blob(), std::ios::in | std::ios::out | std::ios::binary);
    blob.seekp(1'500'000);
    blob.put('x');
    blob.put('y');
  }
  ASSERT_TRUE(try_pull().ok());  // a file of the right size is believed
  request_.verify_present = true;
  expect_complete();
  EXPECT_THAT(listener_.damages, testing::ElementsAre("model.safetensors"));
}

TEST_F(Pull, ANoEndsIt) {
  listener_.go_on = false;
  const auto result = try_pull();
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result.value().end, PullResult::End::declined);
  EXPECT_EQ(listener_.plans.at(0).bytes_to_fetch, shard_.size() + 100'000 + 19);
  EXPECT_EQ(hub_.bytes_sent(), 0u);
  EXPECT_FALSE(fs::exists(snapshot()));
}

TEST_F(Pull, InterruptedItKeepsWhatCame) {
  hub_.on_request([](const HubRequest&) { return HubFault{.bytes_per_second = 2'000'000}; });
  listener_.on_progress = [&](const DownloadProgress& now) {
    if (now.done > 1'000'000) interrupted_ = true;
  };
  const Stopwatch clock;
  const auto result = try_pull();
  ASSERT_TRUE(result.ok()) << result.failure().message;
  EXPECT_EQ(result.value().end, PullResult::End::interrupted);
  EXPECT_LT(clock.seconds(), 3);
  EXPECT_FALSE(fs::exists(snapshot()));
  interrupted_ = false;
  listener_.on_progress = {};
  hub_.on_request({});
  const uint64_t sent = hub_.bytes_sent();
  expect_complete();
  EXPECT_GT(listener_.plans.back().bytes_resumed, 500'000u);
  EXPECT_LT(hub_.bytes_sent() - sent, shard_.size() - 500'000);
}

TEST_F(Pull, AnInterruptEndsTheWaitForASilentHub) {
  hub_.on_request([](const HubRequest&) { return HubFault{.hangs = true}; });
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    interrupted_ = true;
  });
  const Stopwatch clock;
  const auto result = try_pull();
  stopper.join();
  ASSERT_TRUE(result.ok()) << result.failure().message;
  EXPECT_EQ(result.value().end, PullResult::End::interrupted);
  EXPECT_LT(clock.seconds(), 3);
}

TEST_F(Pull, TwoAtOnceTakeTurns) {
  hub_.on_request([](const HubRequest&) { return HubFault{.bytes_per_second = 5'000'000}; });
  Result<PullResult> second = error("not run");
  Listener second_listener;
  std::thread other([&] { second = pull(request_, second_listener, interrupted_); });
  const auto first = try_pull();
  other.join();
  ASSERT_TRUE(first.ok()) << first.failure().message;
  ASSERT_TRUE(second.ok()) << second.failure().message;
  EXPECT_EQ(listener_.waits + second_listener.waits, 1);
  EXPECT_EQ(hub_.bytes_sent(), shard_.size() + 100'000 + 19);
  expect_files();
}

TEST_F(Pull, ChecksTheFreeSpaceFirst) {
  hub_.claim_size("model.safetensors", uint64_t{1} << 49);
  expect_failure({"GB more are needed", "are free"});
  EXPECT_EQ(hub_.bytes_sent(), 0u);
}

TEST_F(Pull, RefusesListsThatLeadOutOfTheFolder) {
  for (const char* name : {"../evil.json", "/etc/evil.json", "a/../../evil.json", "a//b.json"}) {
    StandInHub evil;
    evil.add(name, "x", false);
    request_.hub.endpoint = evil.endpoint();
    expect_failure({"unsafe name"});
  }
}

TEST_F(Pull, SpeedIsEnoughForAFastNetwork) {
  constexpr size_t kBytes = 512 << 20;
  hub_.add("model.safetensors", shard_ = some_content(kBytes, 9), true);
  request_.download = {};
  const Stopwatch clock;
  ASSERT_TRUE(try_pull().ok());
  const double rate = double(kBytes) / 1e6 / clock.seconds();
  expect_files();
  RecordProperty("megabytes_per_second", cat(rate));
  EXPECT_GT(rate, 50);  // a machine under load; the figure itself is what to look at
}

}  // namespace
}  // namespace slip
