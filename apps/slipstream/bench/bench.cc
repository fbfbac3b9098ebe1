// bench: tokens per second of prompts (pp) and of answers (tg), at several depths of context, with
// bytes per step and their share of what the machine can do.
#include <cstdio>

#include "base/clock.h"
#include "base/files.h"
#include "slipstream/bench/report.h"
#include "slipstream/bench/tests.h"
#include "slipstream/common/backend.h"
#include "slipstream/common/loading_bar.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/setting_flags.h"
#include "slipstream/pull/model.h"
#include "slipstream/verb.h"

namespace slip {
namespace {

class Bench : public Verb {
 public:
  Bench() : flags_("bench", "Measure tokens per second and the share of the bandwidth") {
    flags_.positional("MODEL", &positional_model_,
                      "A folder, a repository id, or with --synthetic a shape");
    model_.add_to(flags_);
    model_.add_download_to(flags_);
    flags_.flag(
        "--synthetic", &synthetic_,
        "Measure random weights of the published shape that MODEL names, e.g. qwen3.5-35b-a3b");
    flags_.option("-p,--prompt-tokens", &prompts_, "N,...",
                  "Prompt lengths to measure, in tokens; empty: none");
    flags_.option("-n,--new-tokens", &answers_, "N,...",
                  "Answer lengths to measure, in tokens; empty: none");
    flags_.option("-d,--depth", &depths_, "N,...",
                  "Tokens that the context holds before a test begins");
    flags_.option(
        "-u,--users", &tests_.users, "N",
        "Number of answers decoded at once; speeds are those of all together. Their contexts are "
        "filled with arbitrary values, which takes no time and changes no speed");
    flags_.option("-r,--repeat", &tests_.repeat, "N",
                  "Number of runs per test; the median is reported");
    flags_.choice("-o,--output", &output_, {"table", "md", "json", "csv"}, "Format of the result");
    flags_.flag("--json", &json_, "The same as --output json");
    flags_.option(
        "--project", &project_, "MACHINE",
        "Also project the speed of decoding on another machine: " + projected_machine_names());
    flags_.option("--save", &save_, "FILE", "Also write the JSON result to this file");
    flags_.footer("Shapes: " + join(ModelSource::shape_names(), ", ") + "; " +
                  ModelSource::kShapeFormats);
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    SLIP_TRY_STATUS(model_.take_positional(positional_model_));
    // A shape's name alone is enough: there are no such files to confuse it with.
    synthetic_ |= ModelSource::is_shape(model_.model);
    SLIP_TRY_STATUS(model_.check());
    if (synthetic_ && model_.model.empty())
      return error("--synthetic needs the name of a shape; there are ",
                   join(ModelSource::shape_names(), ", "));
    if (json_ && output_ != "table" && output_ != "json")
      return error("--json and --output ", output_, " at once are one too many");
    if (json_) output_ = "json";
    if (tests_.repeat < 1) return error("--repeat must be at least 1, not ", tests_.repeat);
    if (tests_.users && *tests_.users < 1)
      return error("--users must be at least 1, not ", *tests_.users);
    tests_.int8_factors = model_.int8_factors();
    SLIP_TRY(tests_.prompts, of_flag("--prompt-tokens", parse_counts(prompts_, 1)));
    SLIP_TRY(tests_.answers, of_flag("--new-tokens", parse_counts(answers_, 1)));
    SLIP_TRY(tests_.depths, of_flag("--depth", parse_counts(depths_, 0)));
    if (tests_.depths.empty() || (tests_.prompts.empty() && tests_.answers.empty()))
      return error("there is nothing to measure: give lengths with -p or -n, and a depth");
    SLIP_TRY(there_, find_projected_machine(project_));
    return {};
  }

  Result<int> run() override {
    if (!save_.empty()) {
      SLIP_TRY(save_, place_to_write(save_));
    }
    SLIP_TRY_STATUS(fetch_model(model_));
    SLIP_TRY(const ModelSource source, open_source());
    SLIP_TRY(const Backend backend, make_backend(model_));
    SLIP_TRY(const BenchResult result, measure(source, backend));
    print(result, backend);
    if (save_.empty()) return 0;
    SLIP_TRY_STATUS(write_file_atomically(save_, dump_json(bench_json(result, backend), 2) + "\n"));
    return 0;
  }

 private:
  Result<ModelSource> open_source() const {
    if (synthetic_) return ModelSource::synthetic(model_.model);
    SLIP_TRY(const std::filesystem::path folder, locate_model_beside_shapes(model_.model));
    return open_model(folder, model_);
  }

  Result<BenchResult> measure(const ModelSource& source, const Backend& backend) const {
    EngineOptions options;
    SLIP_TRY(options.memory, memory_request(model_));
    options.weights = weight_choices(model_);
    if (!options.memory.context) options.memory.context = tests_.context();
    options.memory.sequences = tests_.users.value_or(1);
    options.logit_rows = tests_.users.value_or(1);
    const std::string name = model_.name();
    std::fprintf(stderr, "loading %s\n", name.c_str());
    const Stopwatch load_clock;
    Result<std::unique_ptr<Engine>> loaded =
        Engine::load(source, options, *backend.ops, *backend.pool, loading_bar(name));
    if (!loaded.ok() && !model_.context)
      return advise_on_context(std::move(loaded).failure(),
                               "-p, -n and -d set how long the tests are");
    SLIP_TRY(const std::unique_ptr<Engine> engine, std::move(loaded));
    BenchResult result{.model = name,
                       .synthetic = synthetic_,
                       .kv = engine->memory().cache_format.kv,
                       .weight_bytes = engine->model().weight_bytes(),
                       .load_seconds = load_clock.seconds(),
                       .there = there_};
    constexpr double kRoofSeconds = 1;
    const Roofs before = measure_roofs(backend, kRoofSeconds);
    SLIP_TRY(result.rows, run_tests(*engine, tests_, [](const BenchRow& row) {
               std::fprintf(stderr, "%-6s @ %-6lld %10.1f tok/s\n", row.test.c_str(),
                            static_cast<long long>(row.depth), row.tokens_per_second);
             }));
    result.roofs = better_of(before, measure_roofs(backend, kRoofSeconds));
    return result;
  }

  void print(const BenchResult& result, const Backend& backend) const {
    std::string text;
    if (output_ == "json") text = dump_json(bench_json(result, backend)) + "\n";
    if (output_ == "csv") text = bench_table(result, TableStyle::csv);
    if (output_ == "md") text = bench_table(result, TableStyle::markdown);
    if (output_ == "table") text = bench_table(result, TableStyle::plain);
    if (output_ == "md" || output_ == "table") text += "\n" + bench_remarks(result, backend);
    std::fputs(text.c_str(), stdout);
  }

  Flags flags_;
  ModelFlags model_;
  BenchTests tests_;
  std::string positional_model_, prompts_ = "512", answers_ = "128", depths_ = "0,1024";
  std::string output_ = "table", save_, project_;
  std::optional<ProjectedMachine> there_;
  bool synthetic_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_bench_verb() { return std::make_unique<Bench>(); }

}  // namespace slip
