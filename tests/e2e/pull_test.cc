// pull as a user meets it, killed at random moments.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <random>
#include <thread>

#include "base/files.h"
#include "tests/e2e/process.h"
#include "tests/hub/stand_in_hub.h"

namespace slip::e2e {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class PullVerb : public testing::Test {
 protected:
  PullVerb() { hub_.add("config.json", "{}", false); }

  // Everything but the hub's address and the cache is as on a fresh machine.
  std::string environment() const {
    return cat("env -i HOME=", home_.path().string(), " HF_ENDPOINT=", hub_.endpoint(), " ");
  }
  Finished pull(const std::string& arguments) const {
    return shell(environment() + "$SLIP pull " + arguments);
  }
  fs::path snapshot() const {
    return home_.path() / ".cache/huggingface/hub/models--org--model/snapshots" / hub_.commit();
  }
  // The model that comes along, as a repository.
  void add_minnow() {
    for (const auto& entry : fs::directory_iterator(SLIP_SOURCE_DIR "/models/minnow"))
      if (entry.is_regular_file())
        hub_.add(entry.path().filename(), read_text_file(entry.path()).value(),
                 entry.path().extension() == ".safetensors");
  }

  StandInHub hub_;
  TemporaryFolder home_;
};

TEST_F(PullVerb, PrintsTheFolder) {
  hub_.add("model.safetensors", some_content(5'000'000, 1), true);
  const Finished done = pull("org/model");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_EQ(done.out, snapshot().string() + "\n");
  EXPECT_THAT(done.err, HasSubstr("5.0 MB to fetch"));
  EXPECT_THAT(done.err, HasSubstr("all checksums are right"));
  EXPECT_EQ(done.err.find('\r'), std::string::npos);  // no terminal, no overwriting
  const Finished again = pull("org/model");
  EXPECT_EQ(again.status, 0);
  EXPECT_THAT(again.err, HasSubstr("complete and up to date"));
  EXPECT_EQ(pull("org/model -q").err, "");
}

TEST_F(PullVerb, UsageAndFailures) {
  for (const char* wrong : {"", "name", "a/b/c", "../x", "org/model --connections 0"}) {
    const Finished done = pull(wrong);
    EXPECT_EQ(done.status, 2) << wrong;
    EXPECT_THAT(done.err, HasSubstr("--help"));
  }
  const Finished missing = pull("no/such");
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("no/such was not found"));
  const Finished offline = shell("HF_HUB_OFFLINE=1 $SLIP pull org/model");
  EXPECT_EQ(offline.status, 1);
  EXPECT_THAT(offline.err, HasSubstr("HF_HUB_OFFLINE"));
  EXPECT_EQ(pull("org/model --dry-run").out, "");
  EXPECT_FALSE(fs::exists(snapshot()));
}

TEST_F(PullVerb, SaysThatTheHubDoesNotAnswer) {
  const Finished away = pull("org/model --endpoint http://127.0.0.1:1");
  EXPECT_EQ(away.status, 1);
  EXPECT_THAT(away.err, HasSubstr("looking at http://127.0.0.1:1 ...\ntrying again: "));
  EXPECT_THAT(away.err, HasSubstr("; check the network, https_proxy, and the hub's address"));
}

TEST_F(PullVerb, TokensComeFromTheUsualPlaces) {
  const auto token_sent = [&](const std::string& variables) {
    shell(environment() + variables + " $SLIP pull org/model");
    return hub_.requests().back().header("authorization");
  };
  EXPECT_EQ(token_sent(""), "");
  fs::create_directories(home_.path() / ".cache/huggingface");
  home_.write(".cache/huggingface/token", "hf_file\n");
  EXPECT_EQ(token_sent(""), "Bearer hf_file");
  EXPECT_EQ(token_sent("HF_TOKEN=hf_variable"), "Bearer hf_variable");
  EXPECT_EQ(token_sent("HF_TOKEN_PATH=" + home_.write("other", "hf_other")), "Bearer hf_other");
}

TEST_F(PullVerb, AFullDiskIsSaid) {
  hub_.add("model.safetensors", some_content(5'000'000, 1), true);
  // No file may grow beyond 2 MB: the system refuses the write as a full disk would.
  const Finished done =
      shell("trap '' XFSZ; ulimit -f 2000; " + environment() + "$SLIP pull org/model");
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.err, HasSubstr("cannot"));
  EXPECT_FALSE(fs::exists(snapshot()));
  EXPECT_EQ(pull("org/model").status, 0);
}

TEST_F(PullVerb, RunFetchesWhatItDoesNotHave) {
  add_minnow();
  const Finished done = shell(
      environment() +
      "$SLIP run --from-huggingface-repo org/model --prompt Hello --raw --temperature 0 -n 4");
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("org/model is not on this machine"));
  EXPECT_NE(done.out, "");
  const size_t requests = hub_.requests().size();
  const Finished again =
      shell(environment() + "$SLIP run org/model Hello --raw --temperature 0 -n 4");
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(again.out, done.out);
  EXPECT_EQ(hub_.requests().size(), requests);  // no network once it is there
  const Finished twice =
      shell(environment() + "$SLIP run org/model --from-huggingface-repo org/model Hello");
  EXPECT_NE(twice.status, 0);
}

TEST_F(PullVerb, WhatCouldNotRunIsNotFetchedToBeRun) {
  const std::string weights = some_content(5'000'000, 1);
  hub_.add("config.json", R"({"model_type": "llama"})", false);
  hub_.add("model.safetensors", weights, true);
  const Finished other = shell(environment() + "$SLIP run org/model Hello");
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, HasSubstr("would not run here, so it is not downloaded: config.json: "
                                   "model_type: found \"llama\""));
  EXPECT_LT(hub_.bytes_sent(), weights.size());

  hub_.add("config.json", R"({"model_type": "qwen3_5"})", false);
  const Finished large = shell(environment() + "$SLIP serve org/model --memory 3M --port 0");
  EXPECT_EQ(large.status, 1);
  EXPECT_THAT(large.err, HasSubstr("5.0 MB of weights, and 3.0 MB of memory are allowed"));
  EXPECT_LT(hub_.bytes_sent(), weights.size());
  EXPECT_FALSE(fs::exists(snapshot()));

  // Who asks for the download gets it, and hears of it.
  hub_.add("config.json", R"({"model_type": "llama"})", false);
  const Finished asked = shell(environment() + "$SLIP run --from-huggingface-repo org/model Hello");
  EXPECT_THAT(asked.err, HasSubstr("note: this would not run here: config.json"));
  EXPECT_TRUE(fs::exists(snapshot() / "model.safetensors"));
  fs::remove_all(home_.path() / ".cache");
  const Finished pulled = pull("org/model");
  EXPECT_EQ(pulled.status, 0) << pulled.err;
  EXPECT_THAT(pulled.err, HasSubstr("note: this would not run here: config.json"));
}

TEST_F(PullVerb, APersonIsAskedFirst) {
  add_minnow();
  const std::vector<std::string> variables{"TERM=xterm", "HF_ENDPOINT=" + hub_.endpoint()};
  {
    TerminalSession session({"run", "org/model", "--prompt", "Hello", "-n", "4"}, home_.path(),
                            variables);
    ASSERT_TRUE(session.wait_for("Download it now? [Y/n]")) << session.screen();
    session.type("n" + kEnter);
    EXPECT_EQ(session.wait_for_exit(), 1);
    EXPECT_EQ(hub_.bytes_sent(), 0u);
  }
  TerminalSession session({"run", "org/model", "--prompt", "Hello", "-n", "4"}, home_.path(),
                          variables);
  ASSERT_TRUE(session.wait_for("Download it now? [Y/n]")) << session.screen();
  session.type(kEnter);
  EXPECT_TRUE(session.wait_for("all checksums are right")) << session.screen();
  EXPECT_EQ(session.wait_for_exit(), 0) << session.screen();
}

TEST_F(PullVerb, CtrlCLeavesSomethingToGoOnWith) {
  hub_.add("model.safetensors", some_content(20'000'000, 1), true);
  hub_.on_request([](const HubRequest& request) {
    return request.to_storage ? HubFault{.bytes_per_second = 4'000'000} : HubFault{};
  });
  TerminalSession session({"pull", "org/model"}, home_.path(),
                          {"TERM=xterm", "HF_ENDPOINT=" + hub_.endpoint()});
  ASSERT_TRUE(session.wait_for("left")) << session.screen();  // rate and time left are shown
  session.type(kCtrlC);
  EXPECT_TRUE(session.wait_for("run it again to go on")) << session.screen();
  EXPECT_EQ(session.wait_for_exit(), 130);
  hub_.on_request({});
  const Finished done = pull("org/model");
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.err, HasSubstr("came earlier"));
}

TEST_F(PullVerb, KilledAtRandomMomentsItEndsComplete) {
  const std::string first = some_content(150'000'000, 1), second = some_content(40'000'000, 2);
  hub_.add("model-1.safetensors", first, true);
  hub_.add("model-2.safetensors", second, true);
  hub_.on_request([](const HubRequest& request) {
    return request.to_storage ? HubFault{.bytes_per_second = 10'000'000} : HubFault{};
  });
  std::mt19937 random(11);
  const std::string home = "HOME=" + home_.path().string(),
                    endpoint = "HF_ENDPOINT=" + hub_.endpoint();
  constexpr int kKills = 50;  // then it may come to its end
  int kills = 0;
  bool complete = false;
  for (int attempt = 0; attempt < 200 && !complete; ++attempt) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::freopen("/dev/null", "w", stderr);
      ::freopen("/dev/null", "w", stdout);
      const char* argv[] = {SLIP_BINARY, "pull", "org/model", nullptr};
      const char* envp[] = {home.c_str(), endpoint.c_str(), nullptr};
      ::execve(SLIP_BINARY, const_cast<char**>(argv), const_cast<char**>(envp));
      ::_exit(127);
    }
    if (kills < kKills) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 120'000));
      ::kill(child, SIGKILL);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    complete = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (WIFSIGNALED(status) && ++kills == kKills) hub_.on_request({});
    if (!complete) {
      EXPECT_FALSE(fs::exists(snapshot()) && !fs::exists(snapshot() / "model-2.safetensors"));
    }
  }
  ASSERT_TRUE(complete);
  EXPECT_EQ(kills, kKills);
  EXPECT_TRUE(read_text_file(snapshot() / "model-1.safetensors").value() == first);
  EXPECT_TRUE(read_text_file(snapshot() / "model-2.safetensors").value() == second);
  // What came before each kill was not fetched again, but for what was on its way: a buffer of ours
  // and the system's own, per connection.
  EXPECT_LT(hub_.bytes_sent(), (first.size() + second.size()) * 3 / 2);
}

}  // namespace
}  // namespace slip::e2e
