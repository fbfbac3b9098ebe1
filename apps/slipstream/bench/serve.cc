// bench serve: how a server, ours or another that speaks OpenAI's API, holds up under many users.
#include <algorithm>
#include <cstdio>
#include <random>

#include "base/files.h"
#include "slipstream/bench/serve_report.h"
#include "slipstream/common/environment.h"
#include "slipstream/common/terminal.h"
#include "slipstream/verb.h"

namespace slip {
namespace {

class BenchServe : public Verb {
 public:
  BenchServe() : flags_("bench serve", "Measure a running server with several users at once") {
    flags_.option("--url", &url_, "URL", "Address of the server");
    flags_.option("-m,--model", &model_, "NAME",
                  "Name of the model; default: the first that the server lists");
    flags_.option("-u,--users", &users_, "N,...",
                  "Numbers of users at once to measure, one after the other");
    flags_.option("-r,--repeat", &rounds_, "N", "Number of questions that each user asks");
    flags_.option("-p,--prompt-tokens", &prompt_tokens_, "N",
                  "Approximate length of prompts in tokens");
    flags_.option("-n,--new-tokens", &new_tokens_, "N", "Length of answers in tokens");
    flags_.option("--temperature", &temperature_, "T", "Sampling temperature of the answers");
    flags_.option(
        "--conversations", &conversations_, "N",
        "Number of conversations of two turns, which show what the server remembers; 0: none");
    flags_.option("--conversation-tokens", &conversation_tokens_, "N",
                  "Approximate length of a conversation's first question in tokens");
    flags_.option("--seed", &seed_, "N", "Seed of the prompts; default: new prompts in every run");
    flags_.flag("--json", &json_, "Print JSON instead of a table");
    flags_.option("--save", &save_, "FILE", "Also write the JSON to this file");
    flags_.option("--svg", &svg_, "FILE", "Also draw the result as a picture into this file");
    flags_.footer(
        "The server's API key, if it asks for one, is read from SLIPSTREAM_API_KEY.\n"
        "Example: slipstream bench serve --url http://localhost:8080 -u 1,2,4,8 --svg users.svg");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    SLIP_TRY(user_counts_, of_flag("--users", parse_counts(users_, 1)));
    if (user_counts_.empty()) return error("--users names no number of users");
    const auto at_least = [](int64_t least, const char* flag, int64_t value) -> Status {
      if (value >= least) return {};
      return error(flag, " must be at least ", least, ", not ", value);
    };
    SLIP_TRY_STATUS(at_least(1, "--repeat", rounds_));
    SLIP_TRY_STATUS(at_least(1, "--prompt-tokens", prompt_tokens_));
    SLIP_TRY_STATUS(at_least(2, "--new-tokens", new_tokens_));
    SLIP_TRY_STATUS(at_least(0, "--conversations", conversations_));
    return at_least(1, "--conversation-tokens", conversation_tokens_);
  }

  Result<int> run() override {
    for (std::string* file : {&save_, &svg_}) {
      if (file->empty()) continue;
      SLIP_TRY(*file, place_to_write(*file));
    }
    ignore_broken_pipes();
    SLIP_TRY(const MeasuredServer server,
             MeasuredServer::at(url_, {.api_key = user_environment().api_key,
                                       .authorities = hub_settings().authorities}));
    LoadSettings settings;
    settings.server = &server;
    settings.model = model_;
    if (model_.empty()) {
      SLIP_TRY(settings.model, first_model(server));
    }
    settings.max_tokens = new_tokens_;
    settings.temperature = temperature_;
    uint64_t seed = seed_ ? uint64_t(*seed_) : std::random_device()();

    const Result<PromptLengths> lengths = learn_lengths(settings, seed);
    if (!lengths.ok()) return error(url_, ": ", lengths.failure().message);
    settings.prompt_words = lengths.value().words(prompt_tokens_);
    seed += 2;
    ServeReport report{.url = url_,
                       .model = settings.model,
                       .prompt_tokens = prompt_tokens_,
                       .max_tokens = new_tokens_,
                       .conversation_tokens = conversation_tokens_,
                       .plain = plain_row(settings, seed++),
                       .rows = {},
                       .prefix = {}};
    int64_t failures = report.plain.failures;
    for (const int64_t count : user_counts_) {
      report.rows.push_back(row_of(run_load(settings, count, rounds_, seed++)));
      const ServeRow& row = report.rows.back();
      failures += row.failures;
      std::fprintf(stderr, "%lld users: %.1f tok/s\n", static_cast<long long>(count), row.total);
    }
    if (conversations_ > 0) {
      settings.prompt_words = lengths.value().words(conversation_tokens_);
      settings.max_tokens = std::min(new_tokens_, ServeReport::kConversationAnswer);
      std::vector<Turns> all;
      for (int64_t i = 0; i < conversations_; ++i) all.push_back(ask_twice(settings, seed++));
      report.prefix = row_of(all);
      failures += report.prefix->failures;
    }
    const std::string json = dump_json(report.json(), 2) + "\n";
    std::fputs(json_ ? json.c_str() : report.table().c_str(), stdout);
    if (!save_.empty()) SLIP_TRY_STATUS(write_file_atomically(save_, json));
    if (!svg_.empty()) SLIP_TRY_STATUS(write_file_atomically(svg_, report.svg()));
    return failures > 0 ? 1 : 0;
  }

 private:
  // What users at once are compared with.
  ServeRow plain_row(LoadSettings settings, uint64_t seed) const {
    settings.drafts = false;
    return row_of(run_load(settings, 1, rounds_, seed));
  }

  Flags flags_;
  std::vector<int64_t> user_counts_;
  std::string url_ = "http://127.0.0.1:8080", model_, users_ = "1,2,4,8", save_, svg_;
  int64_t rounds_ = 3, prompt_tokens_ = 256, new_tokens_ = 128, conversations_ = 3,
          conversation_tokens_ = 1000;
  std::optional<int64_t> seed_;
  double temperature_ = 0;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_bench_serve_verb() { return std::make_unique<BenchServe>(); }

}  // namespace slip
