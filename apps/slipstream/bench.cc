// bench: tokens per second of prompts (pp) and of answers (tg), at several depths of context, with
// bytes per step and their share of what the machine can do.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "backend.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "bench_users.h"
#include "engine/sampling.h"
#include "engine/session.h"
#include "kernels/cpu/simd/loops.h"
#include "loading_bar.h"
#include "machine.h"
#include "model_flags.h"
#include "numbers.h"
#include "projection.h"
#include "pull_model.h"
#include "roofs.h"
#include "verb.h"

namespace slip {
namespace {

struct Row {
  std::string test;  // "pp512", "tg128"
  int64_t depth = 0;
  double tokens_per_second = 0;  // median of the runs
  double spread = 0;             // largest minus smallest, relative to the median
  int64_t tokens_per_step = 1;
  // Of a decode step; prompts share their weights, so they have none.
  uint64_t bytes_per_step = 0;
  uint64_t int8_products = 0;  // per step
  double gb_per_second = 0;
  double share_of_bandwidth = 0;
  double share_of_int8_rate = 0;
  double share_of_roof = 0;   // of the time that the binding of the two roofs needs
  double projected_rate = 0;  // tokens per second on the machine of --project
};

class Bench : public Verb {
 public:
  Bench() : flags_("bench", "Measure tokens per second and the share of the memory bandwidth") {
    flags_.positional("MODEL", &positional_model_,
                      "A folder, a repository id, or with --synthetic a shape");
    model_.add_to(flags_);
    model_.add_download_to(flags_);
    flags_.flag(
        "--synthetic", &synthetic_,
        "Measure random weights of the published shape that MODEL names, e.g. qwen3.5-35b-a3b");
    flags_.option("-p,--prompt-tokens", &prompts_, "N,...",
                  "Prompt lengths to measure, in tokens; empty: none");
    flags_.option("-n,--new-tokens", &generated_, "N,...",
                  "Answer lengths to measure, in tokens; empty: none");
    flags_.option("-d,--depth", &depths_, "N,...",
                  "Tokens that the context holds before a test begins");
    flags_.option(
        "-u,--users", &users_, "N",
        "Number of answers decoded at once; speeds are those of all together. Their contexts are "
        "filled with arbitrary values, which takes no time and changes no speed");
    flags_.option("-r,--repeat", &repeat_, "N", "Number of runs per test; the median is reported");
    flags_.choice("-o,--output", &output_, {"table", "md", "json", "csv"}, "Format of the result");
    flags_.flag("--json", &json_, "The same as --output json");
    flags_.option(
        "--project", &project_, "MACHINE",
        "Also project the speed of decoding on another machine: " + projected_machine_names());
    flags_.option("--save", &save_, "FILE", "Also write the JSON result to this file");
    flags_.footer("Shapes: " + join(ModelSource::shape_names(), ", "));
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    SLIP_TRY_STATUS(model_.take_positional(positional_model_));
    if (json_) output_ = "json";
    if (repeat_ < 1) return error("--repeat must be at least 1, not ", repeat_);
    if (users_ && *users_ < 1) return error("--users must be at least 1, not ", *users_);
    SLIP_TRY(prompt_lengths_, parse_counts(prompts_, 1));
    SLIP_TRY(answer_lengths_, parse_counts(generated_, 1));
    SLIP_TRY(depths_before_, parse_counts(depths_, 0));
    SLIP_TRY(there_, find_projected_machine(project_));
    return {};
  }

  Result<int> run() override {
    SLIP_TRY_STATUS(fetch_model(model_));
    SLIP_TRY(const ModelSource source, open_source());
    SLIP_TRY(backend_, make_backend(model_));
    EngineOptions options;
    SLIP_TRY(options.memory, memory_request(model_));
    options.weights = weight_choices(model_);
    int64_t longest = 1;
    for (const int64_t depth : depths_before_)
      for (const auto* lengths : {&prompt_lengths_, &answer_lengths_})
        for (const int64_t length : *lengths) longest = std::max(longest, depth + length);
    // Each user's context has room for the steps that are not timed as well.
    if (!options.memory.context) options.memory.context = longest + (users_ ? kPageLen : 0);
    options.memory.sequences = users_.value_or(1);
    options.logit_rows = users_.value_or(1);
    std::fprintf(stderr, "loading %s\n", name().c_str());
    const Stopwatch load_clock;
    SLIP_TRY(engine_,
             Engine::load(source, options, *backend_.ops, *backend_.pool, loading_bar(name())));
    load_seconds_ = load_clock.seconds();
    roofs_ = measure_roofs(backend_, 1.0);

    for (const int64_t depth : depths_before_) {
      for (const int64_t length : prompt_lengths_) {
        SLIP_TRY(const Row row, measure("pp", length, depth));
        report(row);
      }
      for (const int64_t length : answer_lengths_) {
        SLIP_TRY(const Row row,
                 users_ ? measure_users(*users_, length, depth) : measure("tg", length, depth));
        report(row);
      }
    }
    // Memory speed drifts on shared machines: the better of before and after is the honest roof.
    const Roofs after = measure_roofs(backend_, 1.0);
    roofs_.read_bytes_per_second =
        std::max(roofs_.read_bytes_per_second, after.read_bytes_per_second);
    roofs_.int8_products_per_second =
        std::max(roofs_.int8_products_per_second, after.int8_products_per_second);
    for (Row& row : rows_) fill_shares(row);
    std::fputs(rendered().c_str(), stdout);
    if (!save_.empty())
      SLIP_TRY_STATUS(write_file_atomically(save_, dump_json(as_json(), 2) + "\n"));
    return 0;
  }

 private:
  std::string name() const {
    if (model_.model.empty()) return "minnow";
    return synthetic_ ? model_.model : std::filesystem::path(model_.model).filename().string();
  }

  Result<ModelSource> open_source() {
    // A shape's name alone is enough: there are no such files to confuse it with.
    synthetic_ |= ModelSource::is_shape(model_.model);
    if (synthetic_) return ModelSource::synthetic(model_.model);
    SLIP_TRY(const std::filesystem::path folder, locate_model_beside_shapes(model_.model));
    return open_model(folder, model_);
  }

  // Any ids do: speed does not depend on them, but experts do, so they vary.
  std::vector<int32_t> some_ids(int64_t count) const {
    const int64_t vocabulary = engine_->model().info().vocabulary;
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < count; ++i) ids.push_back(int32_t((i * 7919 + 13) % vocabulary));
    return ids;
  }

  Result<Row> measure(const std::string& kind, int64_t length, int64_t depth) {
    Row row;
    row.test = cat(kind, length);
    row.depth = depth;
    std::vector<double> rates;
    for (int64_t run = 0; run < repeat_; ++run) {
      Session session(*engine_);
      // At depth 0 an answer still follows one token.
      const std::vector<int32_t> before =
          some_ids(kind == "tg" ? std::max<int64_t>(depth, 1) : depth);
      SLIP_TRY_STATUS(session.feed(before));
      const std::vector<int32_t> ids = some_ids(length);
      const int64_t fits = std::min(length, engine_->context() - int64_t(before.size()));
      const Stopwatch clock;
      if (kind == "pp") {
        SLIP_TRY_STATUS(session.feed(ids));
      } else {
        // The next token is read off the logits, as in use; its choice is not timed by itself.
        const int64_t vocabulary = engine_->model().info().vocabulary;
        Sampler sampler({.temperature = 0}, vocabulary, vocabulary);
        int32_t id = ids[0];
        for (int64_t i = 0; i < fits; ++i) {
          SLIP_TRY_STATUS(session.feed({&id, 1}));
          id = sampler.next(session.choice());
        }
      }
      rates.push_back(double(kind == "pp" ? length : fits) / clock.seconds());
    }
    fill_rates(row, rates);
    if (kind == "tg") {
      const StepCost cost =
          engine_->model().step_cost(1, depth + length / 2, engine_->memory().cache_format.kv);
      row.bytes_per_step = cost.weight_bytes + cost.cache_bytes;
      row.int8_products = (model_.activations == "8" ? 1 : 2) * cost.integer_products;
    }
    return row;
  }

  Result<Row> measure_users(int64_t users, int64_t length, int64_t depth) {
    Row row;
    row.test = cat("tg", length, "x", users);
    row.depth = depth;
    std::vector<double> rates;
    for (int64_t run = 0; run < repeat_; ++run) {
      SLIP_TRY(const double rate, users_rate(*engine_, users, depth, length));
      rates.push_back(rate);
    }
    fill_rates(row, rates);
    const KvRecipe& kv = engine_->memory().cache_format.kv;
    const StepCost together = engine_->model().step_cost(users, depth, kv);
    const StepCost alone = engine_->model().step_cost(1, depth + length / 2, kv);
    row.bytes_per_step = together.weight_bytes + uint64_t(users) * alone.cache_bytes;
    row.int8_products = (model_.activations == "8" ? 1 : 2) * together.integer_products;
    row.tokens_per_step = users;
    return row;
  }

  static void fill_rates(Row& row, const std::vector<double>& rates) {
    row.tokens_per_second = median(rates);
    const auto [low, high] = std::minmax_element(rates.begin(), rates.end());
    row.spread = (*high - *low) / row.tokens_per_second;
  }

  void report(const Row& row) {
    rows_.push_back(row);
    std::fprintf(stderr, "%-6s @ %-6lld %10.1f tok/s\n", row.test.c_str(),
                 static_cast<long long>(row.depth), row.tokens_per_second);
  }

  void fill_shares(Row& row) const {
    if (row.bytes_per_step == 0) return;
    const double steps_rate = row.tokens_per_second / double(row.tokens_per_step);
    const double bytes_rate = double(row.bytes_per_step) * steps_rate;
    const double product_rate = double(row.int8_products) * steps_rate;
    row.gb_per_second = bytes_rate / 1e9;
    row.share_of_bandwidth = bytes_rate / roofs_.read_bytes_per_second;
    row.share_of_int8_rate = product_rate / roofs_.int8_products_per_second;
    row.share_of_roof = std::max(row.share_of_bandwidth, row.share_of_int8_rate);
    if (there_)
      row.projected_rate = double(row.tokens_per_step) /
                           projected_seconds(1 / steps_rate, double(row.bytes_per_step),
                                             roofs_.read_bytes_per_second, *there_);
  }

  JsonObject as_json() const {
    JsonArray rows;
    for (const Row& row : rows_) {
      rows.push_back(JsonObject{{"test", row.test},
                                {"depth", row.depth},
                                {"tokens_per_second", row.tokens_per_second},
                                {"spread", row.spread},
                                {"bytes_per_step", row.bytes_per_step},
                                {"gb_per_s", row.gb_per_second},
                                {"share_of_bandwidth", row.share_of_bandwidth},
                                {"share_of_int8_rate", row.share_of_int8_rate},
                                {"share_of_roof", row.share_of_roof}});
      if (there_ && row.bytes_per_step > 0)
        rows.back().as_object()["projected_tokens_per_second"] = row.projected_rate;
    }
    JsonObject machine = describe_machine();
    machine["threads"] = backend_.pool->threads();
    machine["instruction_set"] = name_of(backend_.isa);
    machine["read_bandwidth_gb_per_s"] = roofs_.read_bytes_per_second / 1e9;
    if (std::isfinite(roofs_.int8_products_per_second))
      machine["int8_products_per_s"] = roofs_.int8_products_per_second;
    JsonObject result{{"model", name()},
                      {"synthetic", synthetic_},
                      {"kv_cache", name_of(engine_->memory().cache_format.kv)},
                      {"weight_bytes", engine_->model().weight_bytes()},
                      {"load_seconds", load_seconds_},
                      {"rows", std::move(rows)},
                      {"machine", std::move(machine)}};
    if (there_) result["projection"] = describe_projection(*there_);
    return result;
  }

  std::string rendered() const {
    if (output_ == "json") return dump_json(as_json()) + "\n";
    const bool csv = output_ == "csv", md = output_ == "md";
    std::string text;
    const auto line = [&](const std::vector<std::string>& cells) {
      const std::vector<int> widths{18, 7, 7, 12, 12, 8, 11, 11, 14};
      for (size_t i = 0; i < cells.size(); ++i) {
        text += csv ? (i ? "," : "") : md ? (i ? " | " : "| ") : (i ? "  " : "");
        text += csv ? cells[i] : pad(cells[i], widths[i], i < 2);
      }
      text += md ? " |\n" : "\n";
    };
    std::vector<std::string> head{"model",   "test", "depth",       "tok/s",
                                  "MB/step", "GB/s", "% bandwidth", "% int8 rate"};
    if (there_) head.push_back(there_->name + " projected");
    line(head);
    if (md) {
      for (size_t i = 0; i < head.size(); ++i) text += "|---";
      text += "|\n";
    }
    for (const Row& row : rows_) {
      const bool decode = row.bytes_per_step > 0;
      std::vector<std::string> cells{name(),
                                     row.test,
                                     cat(row.depth),
                                     fixed(row.tokens_per_second, 1),
                                     decode ? fixed(double(row.bytes_per_step) / 1e6, 1) : "",
                                     decode ? fixed(row.gb_per_second, 1) : "",
                                     decode ? fixed(100 * row.share_of_bandwidth, 0) : "",
                                     decode ? fixed(100 * row.share_of_int8_rate, 0) : ""};
      if (there_) cells.push_back(decode ? fixed(row.projected_rate, 1) : "");
      line(cells);
    }
    if (!csv)
      text +=
          cat("\n", backend_.description, "; memory reads ",
              fixed(roofs_.read_bytes_per_second / 1e9, 1), " GB/s",
              std::isfinite(roofs_.int8_products_per_second)
                  ? cat(", int8 products ", fixed(roofs_.int8_products_per_second / 1e9, 0), " G/s")
                  : "",
              ", measured in this run\n", there_ ? describe_projection(*there_) + "\n" : "");
    return text;
  }

  static std::string pad(std::string text, int width, bool left) {
    if (int(text.size()) >= width) return text;
    const std::string space(size_t(width) - text.size(), ' ');
    return left ? text + space : space + text;
  }

  Flags flags_;
  ModelFlags model_;
  std::vector<int64_t> prompt_lengths_, answer_lengths_, depths_before_;
  std::string positional_model_, prompts_ = "512", generated_ = "128", depths_ = "0,1024";
  std::string output_ = "table", save_, project_;
  int64_t repeat_ = 3;
  std::optional<int64_t> users_;
  bool synthetic_ = false, json_ = false;

  Backend backend_;
  std::unique_ptr<Engine> engine_;
  double load_seconds_ = 0;
  Roofs roofs_;
  std::optional<ProjectedMachine> there_;
  std::vector<Row> rows_;
};

}  // namespace

std::unique_ptr<Verb> make_bench_verb() { return std::make_unique<Bench>(); }

}  // namespace slip
