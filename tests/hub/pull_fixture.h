// A stand-in hub with a small model, a cache folder, and a way to pull.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>

#include "base/files.h"
#include "hub/pull.h"
#include "tests/hub/stand_in_hub.h"

namespace slip {

class PullFixture : public testing::Test {
 protected:
  static constexpr size_t kShardBytes = 3'000'000;  // three pieces, the last one short
  static constexpr uint64_t kPieceBytes = 1 << 20;

  explicit PullFixture(const StandInHub::Options& options = {}) : hub_(options) {
    ::signal(SIGPIPE, SIG_IGN);
    std::string pattern = (std::filesystem::temp_directory_path() / "slip-pull-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    shard_ = some_content(kShardBytes, 1);
    hub_.add("config.json", "{\"model_type\": \"x\"}", false);
    hub_.add("tokenizer.json", some_content(100'000, 2), false);
    hub_.add("model.safetensors", shard_, true);
    request_.repo = *parse_repo_id("org/model");
    request_.hub_folder = folder_ / "hub";
    request_.hub.endpoint = hub_.endpoint();
    request_.hub.retries = {
        .attempts = 5, .first_wait_seconds = 0.01, .longest_wait_seconds = 0.05};
    request_.hub.limits = {.connect_seconds = 5, .silence_seconds = 5};
    request_.download = {.connections = 3, .piece_bytes = kPieceBytes};
  }
  ~PullFixture() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  Result<PullResult> try_pull() { return pull(request_, listener_, interrupted_); }

  void expect_complete() {
    const Result<PullResult> result = try_pull();
    ASSERT_TRUE(result.ok()) << result.failure().message;
    EXPECT_EQ(result.value().end, PullResult::End::complete);
    EXPECT_EQ(result.value().folder, snapshot());
    expect_files();
  }
  void expect_files() {
    for (const auto& [name, content] :
         {std::pair<std::string, std::string>{"model.safetensors", shard_},
          {"tokenizer.json", some_content(100'000, 2)}}) {
      const Result<std::string> text = read_text_file(snapshot() / name, uint64_t{1} << 32);
      ASSERT_TRUE(text.ok()) << text.failure().message;
      EXPECT_TRUE(text.value() == content) << name << " differs";
    }
    for (const auto& entry : std::filesystem::directory_iterator(repo_folder() / "blobs")) {
      EXPECT_NE(entry.path().extension(), ".partial");
      EXPECT_NE(entry.path().extension(), ".pieces");
    }
  }
  void expect_failure(std::initializer_list<std::string> parts) {
    const Result<PullResult> result = try_pull();
    ASSERT_FALSE(result.ok()) << "expected: " << *parts.begin();
    for (const std::string& part : parts)
      EXPECT_THAT(result.failure().message, testing::HasSubstr(part));
    EXPECT_FALSE(std::filesystem::exists(snapshot()));  // never half a model
    EXPECT_FALSE(std::filesystem::exists(repo_folder() / "refs" / "main"));
  }

  std::filesystem::path repo_folder() const { return folder_ / "hub" / "models--org--model"; }
  std::filesystem::path snapshot() const { return repo_folder() / "snapshots" / hub_.commit(); }
  std::filesystem::path shard_blob() const {
    return repo_folder() / "blobs" / hub_.oid("model.safetensors");
  }

  // Counts what happens.
  struct Listener : PullListener {
    void waiting_for_another() override { ++waits; }
    void damaged(const std::string& path) override { damages.push_back(path); }
    bool planned(const PullPlan& plan) override {
      plans.push_back(plan);
      return go_on;
    }
    Status configured(const std::string& config, uint64_t weight_bytes) override {
      configs.push_back(cat(config, " ", weight_bytes));
      if (on_config) return on_config();
      return {};
    }
    void progressed(const DownloadProgress& progress) override {
      last = progress;
      if (on_progress) on_progress(progress);
    }
    int waits = 0;
    bool go_on = true;
    std::vector<std::string> damages;
    std::vector<PullPlan> plans;
    std::vector<std::string> configs;
    std::function<Status()> on_config;
    DownloadProgress last;
    std::function<void(const DownloadProgress&)> on_progress;
  };

  StandInHub hub_;
  std::filesystem::path folder_;
  std::string shard_;
  PullRequest request_;
  Listener listener_;
  std::atomic<bool> interrupted_{false};
};

}  // namespace slip
