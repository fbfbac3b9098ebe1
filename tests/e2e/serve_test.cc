// serve as a process: it starts, says how it is, ends when told to, and starts again.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "base/clock.h"
#include "tests/e2e/process.h"
#include "tests/server/http_client.h"

namespace slip::e2e {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr double kPatience = 60;  // seconds, for a machine under load

class Server {
 public:
  explicit Server(std::vector<std::string> arguments, const std::string& key = "") {
    std::vector<std::string> words{SLIP_BINARY, "serve"};
    if (std::find(arguments.begin(), arguments.end(), "--port") == arguments.end())
      words.insert(words.end(), {"--port", "0"});
    words.insert(words.end(), arguments.begin(), arguments.end());
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    child_ = ::fork();
    if (child_ == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      if (!key.empty()) ::setenv("SLIPSTREAM_API_KEY", key.c_str(), 1);
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    log_end_ = ends[0];
    if (wait_for_log("listening on ")) {
      const size_t colon = log_.find(':', log_.find("://") + 3);
      port_ = uint16_t(std::strtoul(log_.c_str() + colon + 1, nullptr, 10));
    }
  }
  ~Server() {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(log_end_);
  }

  bool wait_for_log(const std::string& text) {
    const Stopwatch clock;
    while (log_.find(text) == std::string::npos) {
      if (clock.seconds() > kPatience || !read_log(0.1)) return false;
    }
    return true;
  }
  bool wait_until_ready() { return wait_for_log("chat page and API"); }

  void send_signal(int number) const { ::kill(child_, number); }
  // The exit status, or 128 + the signal; -1 when it does not end.
  int wait_for_exit() {
    const Stopwatch clock;
    while (clock.seconds() < kPatience) {
      int status = 0;
      if (::waitpid(child_, &status, WNOHANG) == child_) {
        child_ = -1;
        while (read_log(0.01)) {
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      }
      read_log(0.02);
    }
    return -1;
  }

  uint16_t port() const { return port_; }
  const std::string& log() const { return log_; }

  std::string ask(const std::string& request) const {
    RawClient client(port_);
    client.send(request);
    return client.read_reply();
  }
  // User and system time so far, in seconds.
  double cpu_seconds() const {
    const Finished shown = shell("cut -d' ' -f14,15 /proc/" + std::to_string(child_) + "/stat");
    char* end = nullptr;
    const double user = std::strtod(shown.out.c_str(), &end);
    return (user + std::strtod(end, nullptr)) / double(::sysconf(_SC_CLK_TCK));
  }

 private:
  // False only at the end.
  bool read_log(double seconds) {
    pollfd input{log_end_, POLLIN, 0};
    if (::poll(&input, 1, int(seconds * 1000)) <= 0) return child_ > 0;
    char bytes[4096];
    const ssize_t count = ::read(log_end_, bytes, sizeof(bytes));
    if (count <= 0) return false;
    log_.append(bytes, size_t(count));
    return true;
  }

  pid_t child_ = -1;
  int log_end_ = -1;
  uint16_t port_ = 0;
  std::string log_;
};

std::string question(const std::string& more = "", const std::string& text = "Tell me a story.") {
  return post_request(
      "/v1/chat/completions",
      R"({"model":"minnow","messages":[{"role":"user","content":")" + text + "\"}]" + more + "}");
}
const std::string kStream = R"(,"stream":true,"max_tokens":400,"ignore_eos":true)";

TEST(Serve, AnswersAndTellsHowItIs) {
  Server server({});
  ASSERT_TRUE(server.wait_until_ready()) << server.log();
  EXPECT_THAT(server.log(), HasSubstr("answers at once"));
  EXPECT_EQ(status_of(server.ask(get_request("/health"))), 200);
  const std::string answer =
      server.ask(question(R"(,"temperature":0)", "What is the capital of France?"));
  EXPECT_EQ(status_of(answer), 200);
  EXPECT_THAT(answer, HasSubstr("Paris"));
  EXPECT_THAT(
      server.ask(get_request("/metrics")),
      HasSubstr("vllm:request_success_total{model_name=\"minnow\",finished_reason=\"stop\"} 1"));
  EXPECT_THAT(server.ask(get_request("/version")), HasSubstr("version"));
  EXPECT_THAT(server.ask(get_request("/")), HasSubstr("text/html"));
  EXPECT_EQ(status_of(server.ask(get_request("/nowhere"))), 404);
  ASSERT_TRUE(server.wait_for_log("200 POST /v1/chat/completions"));
  EXPECT_THAT(server.log(), HasSubstr(" tok/s"));
  EXPECT_THAT(server.log(), Not(HasSubstr("capital of France")));
}

TEST(Serve, IsThereBeforeTheModelIs) {
  // minnow loads within a tenth of a second; one of some looks comes in time.
  bool seen = false;
  for (int i = 0; i < 10 && !seen; ++i) {
    Server server({"--log-format", "json"});
    const std::string first = server.ask(get_request("/health"));
    const std::string early = server.ask(question());
    if (status_of(first) == 503) {
      seen = true;
      const JsonObject body = parse_json(body_of(first), "health").value().as_object();
      EXPECT_EQ(body.at("status").as_string(), "loading");
      EXPECT_GE(body.at("progress").to_number<double>(), 0);
      EXPECT_LE(body.at("progress").to_number<double>(), 1);
    }
    if (status_of(early) == 503) {
      EXPECT_THAT(early, HasSubstr("Retry-After"));
    }
    ASSERT_TRUE(server.wait_for_log("\"event\": \"ready\"")) << server.log();
    EXPECT_EQ(status_of(server.ask(get_request("/health"))), 200);
  }
  EXPECT_TRUE(seen);
}

TEST(Serve, DryRunSaysWhatFits) {
  const Finished done = run({"serve", "--dry-run", "--max-users", "3", "-c", "2K"});
  EXPECT_EQ(done.status, 0);
  EXPECT_THAT(done.out, HasSubstr("up to 3 answers at once, up to 2048 positions each"));
  EXPECT_THAT(done.out, HasSubstr("weights"));
  // What an agent sends first is longer than an equal share; one alone may use all that there is.
  EXPECT_THAT(run({"serve", "--dry-run", "--max-users", "4"}).out,
              HasSubstr("up to 4 answers at once, up to 32768 positions each, 131072 in all"));
  EXPECT_THAT(run({"serve", "--dry-run", "--max-users", "1"}).out,
              HasSubstr("one answer at a time, up to 32768 positions\n"));
}

TEST(Serve, UsesNoProcessorWhenIdle) {
  Server server({});
  ASSERT_TRUE(server.wait_until_ready());
  server.ask(question(R"(,"max_tokens":5)"));
  RawClient idle(server.port());
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double before = server.cpu_seconds();
  std::this_thread::sleep_for(std::chrono::seconds(1));
  EXPECT_LE(server.cpu_seconds() - before, 0.021);
}

TEST(Serve, SigtermLetsAnswersEnd) {
  Server server({});
  ASSERT_TRUE(server.wait_until_ready());
  RawClient client(server.port());
  client.send(question(kStream));
  ASSERT_TRUE(client.wait_for("data: "));
  server.send_signal(SIGTERM);
  ASSERT_TRUE(server.wait_for_log("stopping"));
  EXPECT_THAT(client.read_all(), HasSubstr("data: [DONE]"));
  client.close();
  EXPECT_EQ(server.wait_for_exit(), 0) << server.log();
}

TEST(Serve, TheDeadlineAndASecondSignalEndIt) {
  const std::string endless = R"(,"stream":true,"max_tokens":8000,"ignore_eos":true)";
  {
    Server server({"--shutdown-seconds", "0.2"});
    ASSERT_TRUE(server.wait_until_ready());
    RawClient client(server.port());
    client.send(question(endless));
    ASSERT_TRUE(client.wait_for("data: "));
    const Stopwatch clock;
    server.send_signal(SIGINT);
    EXPECT_EQ(server.wait_for_exit(), 0) << server.log();
    EXPECT_LT(clock.seconds(), 5);
    EXPECT_THAT(server.log(), HasSubstr("before all answers were complete"));
  }
  Server server({});
  ASSERT_TRUE(server.wait_until_ready());
  RawClient client(server.port());
  client.send(question(endless));
  ASSERT_TRUE(client.wait_for("data: "));
  server.send_signal(SIGTERM);
  ASSERT_TRUE(server.wait_for_log("stopping"));
  // Meanwhile whoever comes is told so.
  const std::string health = server.ask(get_request("/health"));
  EXPECT_EQ(status_of(health), 503);
  EXPECT_THAT(health, HasSubstr("draining"));
  const std::string refused = server.ask(question());
  EXPECT_EQ(status_of(refused), 503);
  EXPECT_THAT(refused, HasSubstr("Retry-After"));
  const Stopwatch clock;
  server.send_signal(SIGTERM);
  EXPECT_EQ(server.wait_for_exit(), 0);
  EXPECT_LT(clock.seconds(), 2);
}

TEST(Serve, StartsAgainOnThePortOfAKilledOne) {
  std::string port;
  {
    Server server({});
    ASSERT_TRUE(server.wait_until_ready());
    port = std::to_string(server.port());
    RawClient client(server.port());
    client.send(question(kStream));
    ASSERT_TRUE(client.wait_for("data: "));
    server.send_signal(SIGKILL);
    EXPECT_EQ(server.wait_for_exit(), 128 + SIGKILL);
  }
  Server again({"--port", port});
  ASSERT_TRUE(again.wait_until_ready()) << again.log();
  EXPECT_EQ(status_of(again.ask(get_request("/health"))), 200);
}

TEST(Serve, AClientThatLeavesIsLoggedAndItsAnswerEnded) {
  Server server({});
  ASSERT_TRUE(server.wait_until_ready());
  {
    RawClient client(server.port());
    client.send(question(kStream));
    ASSERT_TRUE(client.wait_for("data: "));
  }
  EXPECT_TRUE(server.wait_for_log("499 POST /v1/chat/completions"));
  const std::string idle = "vllm:num_requests_running{model_name=\"minnow\"} 0";
  const Stopwatch clock;
  while (server.ask(get_request("/metrics")).find(idle) == std::string::npos)
    ASSERT_LT(clock.seconds(), kPatience) << "its answer goes on";
}

TEST(Serve, AsksForTheKey) {
  const TemporaryFolder folder;
  const std::string file = folder.write("keys", "# two\nfirst-key\nsecond-key\n");
  Server server({"--api-key-file", file}, "third-key");
  ASSERT_TRUE(server.wait_until_ready());
  EXPECT_EQ(status_of(server.ask(get_request("/v1/models"))), 401);
  EXPECT_EQ(status_of(server.ask(get_request("/metrics"))), 401);
  EXPECT_EQ(status_of(server.ask(get_request("/health"))), 200);
  for (const char* key : {"first-key", "second-key", "third-key"})
    EXPECT_EQ(status_of(server.ask(
                  get_request("/v1/models", std::string("Authorization: Bearer ") + key + "\r\n"))),
              200);
  EXPECT_THAT(server.log(), Not(HasSubstr("-key")));
}

TEST(Serve, RefusesToOpenUpWithoutAKey) {
  const Finished open = run({"serve", "--host", "0.0.0.0", "--port", "0"});
  EXPECT_EQ(open.status, 2);
  EXPECT_THAT(open.err, HasSubstr("--insecure"));
  Server server({"--host", "0.0.0.0", "--insecure"});
  ASSERT_TRUE(server.wait_until_ready()) << server.log();
  EXPECT_THAT(server.log(), HasSubstr("chat page and API: http://127.0.0.1:"));
}

TEST(Serve, ReadsAConfigFile) {
  const TemporaryFolder folder;
  const std::string lines = folder.write(
      "serve.conf", "# settings\nmax-users = 3\nctx = 1K\nalias = \"small fry\"\nalias = tiny\n");
  {
    Server server({"--config", lines});
    ASSERT_TRUE(server.wait_until_ready()) << server.log();
    EXPECT_THAT(server.log(), HasSubstr("up to 3 answers at once, up to 1024 positions each"));
    const std::string models = server.ask(get_request("/v1/models"));
    EXPECT_THAT(models, HasSubstr("small fry"));
    EXPECT_THAT(models, HasSubstr("\"max_model_len\": 1024"));
    EXPECT_THAT(models, HasSubstr("\"n_ctx_train\": 32768"));
    EXPECT_THAT(models, HasSubstr("tiny"));
  }
  // Flags win over the file.
  const std::string json =
      folder.write("serve.json", R"({"max_users": 3, "ctx": "1K", "alias": ["a", "b"]})");
  Server server({"--config", json, "--max-users", "2"});
  ASSERT_TRUE(server.wait_until_ready()) << server.log();
  EXPECT_THAT(server.log(), HasSubstr("up to 2 answers at once, up to 1024 positions each"));

  const Finished wrong = run({"serve", "--config", folder.write("bad.conf", "prot = 8080\n")});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("bad.conf: there is no setting \"prot\""));
  const Finished words = run({"serve", "--config", folder.write("c3", "max-users = lots\n")});
  EXPECT_EQ(words.status, 2);
  EXPECT_THAT(words.err, testing::MatchesRegex("slipstream serve: .*c3: [^;]*--max-users: expects "
                                               "a whole number[^;]*; see slipstream serve "
                                               "--help\n"));
}

TEST(Serve, SaysWhyItCannotStart) {
  Server first({});
  const Finished taken = run({"serve", "--port", std::to_string(first.port())});
  EXPECT_EQ(taken.status, 1);
  EXPECT_THAT(taken.err, HasSubstr("in use"));
  const Finished missing = run({"serve", "/no/such/model", "--port", "0"});
  EXPECT_EQ(missing.status, 1);
  const Finished too_large = run({"serve", "--memory", "1M", "--port", "0"});
  EXPECT_EQ(too_large.status, 1);
  EXPECT_EQ(run({"serve", "--tls-cert", "a.pem"}).status, 2);
  EXPECT_EQ(run({"serve", "--max-body", "0"}).status, 2);
  EXPECT_THAT(run({"serve", "minnow", "-m", "other"}).err, HasSubstr("given twice"));
}

// minnow with the largest numbers that bf16 has in its last norm: its logits are infinite.
std::filesystem::path broken_minnow(const TemporaryFolder& folder) {
  namespace fs = std::filesystem;
  const fs::path to = folder.path() / "broken";
  fs::copy(fs::path(SLIP_SOURCE_DIR) / "models/minnow", to);
  for (const auto& entry : fs::directory_iterator(to)) {
    if (entry.path().extension() != ".safetensors") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    uint64_t length = 0;
    file.read(reinterpret_cast<char*>(&length), sizeof(length));
    std::string header(length, ' ');
    file.read(header.data(), std::streamsize(length));
    const auto json = parse_json(header, "header").value();
    for (const auto& [name, tensor] : json.as_object()) {
      if (name != "model.language_model.norm.weight") continue;
      const auto& offsets = tensor.as_object().at("data_offsets").as_array();
      const auto begin = offsets[0].to_number<uint64_t>(), end = offsets[1].to_number<uint64_t>();
      file.seekp(std::streamoff(sizeof(length) + length + begin));
      file << std::string(end - begin, '\x7f');
    }
  }
  return to;
}

TEST(Serve, AModelWithoutNumbersIsNotServed) {
  const TemporaryFolder folder;
  Server server({broken_minnow(folder).string()});
  EXPECT_NE(server.wait_for_exit(), 0);
  EXPECT_THAT(server.log(), HasSubstr("logits are not numbers"));
}

// minnow, with other words in one of its files.
std::string minnow_with(const TemporaryFolder& folder, const std::string& name,
                        const std::string& text) {
  for (const auto& entry : std::filesystem::directory_iterator(SLIP_SOURCE_DIR "/models/minnow"))
    if (entry.path().filename() != name)
      std::filesystem::create_symlink(entry.path(), folder.path() / entry.path().filename());
  folder.write(name, text);
  return folder.path().string();
}

TEST(Serve, SaysWhatIsWrongWithATokenizer) {
  const TemporaryFolder folder;
  const Finished done = run({"serve", minnow_with(folder, "tokenizer.json", "{"), "--port", "0"});
  EXPECT_EQ(done.status, 1);
  EXPECT_THAT(done.err, HasSubstr("tokenizer.json: not valid JSON"));
}

TEST(Serve, SaysWhyThereAreNoChats) {
  const TemporaryFolder folder;
  Server server({minnow_with(folder, "chat_template.jinja", "{% if %}"), "--alias", "minnow"});
  ASSERT_TRUE(server.wait_until_ready()) << server.log();
  EXPECT_THAT(server.log(), HasSubstr("chat endpoints are off: chat_template.jinja line 1: "));
  const std::string answer = server.ask(question());
  EXPECT_EQ(status_of(answer), 400);
  EXPECT_THAT(answer, HasSubstr("/v1/completions: chat_template.jinja line 1: "));
  EXPECT_EQ(
      status_of(server.ask(post_request("/v1/completions", R"({"prompt":"A","max_tokens":1})"))),
      200);
}

TEST(BenchServe, MeasuresAServer) {
  Server server({});
  ASSERT_TRUE(server.wait_until_ready());
  const TemporaryFolder folder;
  const std::string svg = (folder.path() / "users.svg").string();
  const Finished done = run(
      {"bench", "serve", "--url", "http://localhost:" + std::to_string(server.port()), "-u", "1,4",
       "-r", "1", "-n", "16", "-p", "100", "--conversations", "1", "--json", "--svg", svg});
  const JsonObject report = done.json();
  EXPECT_EQ(report.at("model").as_string(), "minnow");
  const JsonArray& rows = report.at("rows").as_array();
  ASSERT_EQ(rows.size(), 2u);
  for (const Json& row : rows) {
    const JsonObject& object = row.as_object();
    EXPECT_EQ(object.at("failures").to_number<int>(), 0);
    EXPECT_EQ(object.at("tokens").to_number<int>(), 16 * object.at("users").to_number<int>());
    EXPECT_GT(object.at("tokens_per_second").to_number<double>(), 0);
  }
  EXPECT_GT(report.at("prefix").as_object().at("cached_tokens").to_number<int>(), 50);
  EXPECT_THAT(shell("cat " + svg).out, HasSubstr("</svg>"));
}

}  // namespace
}  // namespace slip::e2e
