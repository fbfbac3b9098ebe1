// Everything a network and a hub can do to a pull.
#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "base/clock.h"
#include "tests/hub/pull_fixture.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

class PullFaults : public PullFixture {
 protected:
  // The first `times` replies with content of the large file.
  void spoil_storage(int times, const HubFault& fault) {
    hub_.on_request([this, times, fault](const HubRequest& request) {
      return request.to_storage && spoiled_++ < times ? fault : HubFault{};
    });
  }
  void answer_everything(const HubFault& fault) {
    hub_.on_request([fault](const HubRequest&) { return fault; });
  }
  std::atomic<int> spoiled_{0};
};

TEST_F(PullFaults, ConnectionsThatBreakAtAnyByte) {
  for (const uint64_t cut : {uint64_t{0}, uint64_t{1}, uint64_t{65'536}, uint64_t{1'048'575}}) {
    spoiled_ = 0;
    spoil_storage(4, {.cut_after = cut});
    expect_complete();
    EXPECT_GE(listener_.last.troubles, 1u);
    fs::remove_all(folder_ / "hub");
  }
}

TEST_F(PullFaults, BytesThatCameBeforeABreakAreNotFetchedAgain) {
  hub_.on_request([](const HubRequest& request) {
    return request.to_storage ? HubFault{.cut_after = 300'000} : HubFault{};
  });
  expect_complete();
  EXPECT_EQ(hub_.bytes_sent(), shard_.size() + 100'000 + 19);
}

TEST_F(PullFaults, BreaksAtRandomBytesOfEveryReply) {
  std::mt19937 random(7);
  std::mutex mutex;
  hub_.on_request([&](const HubRequest& request) {
    if (request.is_for("/api/")) return HubFault{};
    const std::scoped_lock lock(mutex);
    return HubFault{.cut_after = random() % 200'000};
  });
  request_.hub.retries.attempts = 50;
  expect_complete();
}

TEST_F(PullFaults, ServerErrorsPass) {
  for (const int status : {500, 502, 503, 429}) {
    std::atomic<int> count{0};
    hub_.on_request([&](const HubRequest&) {
      return count++ % 3 == 0 ? HubFault{.status = status, .headers = "Retry-After: 0\r\n"}
                              : HubFault{};
    });
    expect_complete();
    fs::remove_all(folder_ / "hub");
  }
}

TEST_F(PullFaults, ServerErrorsThatStayAreToldAndCostNothing) {
  hub_.on_request([](const HubRequest& request) {
    return request.to_storage ? HubFault{.status = 503} : HubFault{};
  });
  expect_failure({"model.safetensors", "503", "gave up after 5 attempts", "kept"});
  hub_.on_request({});
  expect_complete();
}

TEST_F(PullFaults, SignedAddressesThatRanOutAreMadeAnew) {
  spoil_storage(3, {.status = 403});
  expect_complete();
}

TEST_F(PullFaults, OtherBytesThanAskedForAreNotTaken) {
  spoil_storage(3, {.range_shift = 1000});
  expect_complete();
  EXPECT_THAT(listener_.last.trouble, testing::HasSubstr("asked for bytes"));
}

TEST_F(PullFaults, OtherBytesEveryTime) {
  spoil_storage(1000, {.range_shift = 1000});
  expect_failure({"asked for bytes", "gave up"});
}

TEST_F(PullFaults, AHubWithoutRanges) {
  answer_everything({.ignores_range = true});
  expect_complete();
  // Workers that asked for pieces find out by themselves, and leave it to one of them.
  const std::vector<HubRequest> requests = hub_.requests();
  EXPECT_LE(std::count_if(requests.begin(), requests.end(),
                          [](const HubRequest& request) { return request.to_storage; }),
            request_.download.connections + 2);
}

TEST_F(PullFaults, AHubWithoutRangesThatBreaks) {
  std::atomic<int> breaks{0};
  hub_.on_request([&](const HubRequest& request) {
    HubFault fault{.ignores_range = true};
    if (request.to_storage && breaks++ < 4) fault.cut_after = 1'300'000;
    return fault;
  });
  expect_complete();
}

TEST_F(PullFaults, AHubThatForgetsRangesNowAndThen) {
  hub_.on_request(
      [](const HubRequest& request) { return HubFault{.ignores_range = request.number % 2 == 0}; });
  expect_complete();
}

TEST_F(PullFaults, RepliesInChunks) {
  answer_everything({.in_chunks = true});
  expect_complete();
}

TEST_F(PullFaults, ASilentServerIsGivenUpAndTriedAgain) {
  request_.hub.limits.silence_seconds = 0.3;
  spoil_storage(2, {.hangs = true});
  expect_complete();
  EXPECT_THAT(listener_.last.trouble, testing::HasSubstr("nothing came for"));
}

TEST_F(PullFaults, SlowButSteadyIsFine) {
  request_.hub.limits.silence_seconds = 0.5;
  hub_.on_request([](const HubRequest& request) {
    return request.to_storage ? HubFault{.bytes_per_second = 800'000} : HubFault{};
  });
  expect_complete();
}

TEST_F(PullFaults, OneWrongChecksumIsFetchedAgain) {
  spoil_storage(1, {.flips_a_byte = true});
  expect_complete();
  EXPECT_THAT(listener_.last.trouble, testing::HasSubstr("wrong checksum"));
}

TEST_F(PullFaults, WrongChecksumsAreNeverAccepted) {
  spoil_storage(1000, {.flips_a_byte = true});
  expect_failure({"model.safetensors", "wrong checksum: expected " + hub_.oid("model.safetensors"),
                  "2 times"});
  EXPECT_FALSE(fs::exists(shard_blob()));
  hub_.on_request({});
  expect_complete();
}

TEST_F(PullFaults, SmallFilesAreCheckedToo) {
  hub_.on_request([](const HubRequest& request) {
    return HubFault{.flips_a_byte = request.is_for("tokenizer.json")};
  });
  expect_failure({"tokenizer.json", "wrong checksum"});
}

TEST_F(PullFaults, AFileThatChangesBetweenItsPieces) {
  std::atomic<bool> changed{false};
  hub_.on_request([&](const HubRequest& request) {
    if (!request.to_storage || changed.exchange(true)) return HubFault{};
    hub_.add("model.safetensors", some_content(kShardBytes, 77), true);
    return HubFault{.cut_after = 500'000};
  });
  request_.download.connections = 1;
  expect_failure({"model.safetensors has changed on the hub"});
}

TEST_F(PullFaults, AStorageWhoseFileChangesUnnoticedByTheHub) {
  spoil_storage(1, {.cut_after = 500'000});
  hub_.on_request([this](const HubRequest& request) {
    // Two versions in one file, again and again: only the checksum can tell.
    return HubFault{.flips_a_byte = request.to_storage && spoiled_++ % 3 == 1};
  });
  expect_failure({"wrong checksum"});
}

TEST_F(PullFaults, AFileOfAnotherSizeThanListed) {
  hub_.claim_size("model.safetensors", shard_.size() + 1);
  expect_failure({"model.safetensors", "has changed on the hub"});
}

TEST_F(PullFaults, RedirectsInACircle) {
  hub_.on_request([&](const HubRequest& request) {
    return request.is_for("/resolve/")
               ? HubFault{.status = 302, .headers = "Location: " + request.target + "\r\n"}
               : HubFault{};
  });
  expect_failure({"redirects in a circle"});
}

TEST_F(PullFaults, RefusalsAreSaidInWords) {
  answer_everything({.status = 401});
  expect_failure({"org/model", "does not exist, or is private (401)", "HF_TOKEN"});
  answer_everything({.status = 403, .headers = "X-Error-Code: GatedRepo\r\n"});
  expect_failure({"org/model is gated (403)", hub_.endpoint() + "/org/model", "HF_TOKEN"});
  answer_everything({.status = 404, .headers = "X-Error-Code: RepoNotFound\r\n"});
  expect_failure({"org/model was not found", "(404)"});
  answer_everything({.status = 404, .headers = "X-Error-Code: RevisionNotFound\r\n"});
  expect_failure({"org/model has no revision main"});
  answer_everything({.status = 418, .headers = "X-Error-Message: short and stout\r\n"});
  expect_failure({"418", "short and stout"});
  EXPECT_EQ(hub_.requests().size(), 5u);  // none of them is tried again
  request_.hub.token = "hf_old";
  answer_everything({.status = 401});
  expect_failure({"refuses the token (401)"});
  answer_everything({.status = 403, .headers = "X-Error-Code: GatedRepo\r\n"});
  expect_failure({"is gated", "no access"});
}

TEST_F(PullFaults, GatedFilesOfAnOpenList) {
  hub_.on_request([](const HubRequest& request) {
    return request.is_for("/resolve/")
               ? HubFault{.status = 401, .headers = "X-Error-Code: GatedRepo\r\n"}
               : HubFault{};
  });
  expect_failure({"is gated (401)", "accept its conditions"});
}

TEST_F(PullFaults, NobodyThere) {
  {
    const StandInHub gone;
    request_.hub.endpoint = gone.endpoint();
  }
  expect_failure({"cannot reach 127.0.0.1"});
  request_.hub.endpoint = "http://no-such-host.invalid";
  expect_failure({"cannot find no-such-host.invalid"});
  request_.hub.endpoint = "ftp://somewhere";
  expect_failure({"ftp://somewhere", "expected http"});
}

TEST_F(PullFaults, PartialFilesThatMakeNoSense) {
  const auto spoil = [&](const char* suffix, const std::string& content) {
    fs::create_directories(repo_folder() / "blobs");
    std::ofstream(shard_blob().string() + suffix, std::ios::binary) << content;
  };
  const std::string garbage = some_content(shard_.size(), 99);
  spoil(".partial", garbage);
  expect_complete();  // without a table nothing of it is believed
  fs::remove_all(folder_ / "hub");
  spoil(".partial", "short");
  spoil(".pieces", "nonsense");
  expect_complete();
  fs::remove_all(folder_ / "hub");
  // A table that claims everything came, as after a power cut: the checksum finds it out.
  spoil(".partial", garbage);
  {
    auto partial = PartialFile::open(shard_blob(), shard_.size(), kPieceBytes);
    ASSERT_TRUE(partial.ok());
    for (size_t i = 0; i < partial.value().pieces(); ++i)
      ASSERT_TRUE(partial.value()
                      .append(i, std::span(garbage).subspan(size_t(partial.value().begin_of(i)),
                                                            size_t(partial.value().length_of(i))))
                      .ok());
  }
  expect_complete();
  EXPECT_THAT(listener_.last.trouble, testing::HasSubstr("wrong checksum"));
}

}  // namespace
}  // namespace slip
