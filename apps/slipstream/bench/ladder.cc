// bench ladder: what each technique is worth, one on top of the other, on one model.
#include <algorithm>
#include <cstdio>

#include "base/files.h"
#include "slipstream/bench/ladder_chart.h"
#include "slipstream/bench/ladder_climb.h"
#include "slipstream/bench/ladder_prompts.h"
#include "slipstream/bench/ladder_table.h"
#include "slipstream/bench/projection.h"
#include "slipstream/common/backend.h"
#include "slipstream/common/machine.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/numbers.h"
#include "slipstream/common/progress_line.h"
#include "slipstream/common/roofs.h"
#include "slipstream/common/terminal.h"
#include "slipstream/pull/model.h"
#include "slipstream/run/model.h"
#include "slipstream/verb.h"

namespace slip {
namespace {

// Models with fewer tokens than this cannot be asked for a red-black tree.
constexpr int64_t kSmallVocabulary = 32768;

class BenchLadder : public Verb {
 public:
  BenchLadder() : flags_("bench ladder", "Measure what each technique is worth, step by step") {
    flags_.positional("MODEL", &positional_model_,
                      "A folder, a repository id, or with --synthetic a shape");
    model_.add_machine_to(flags_);
    model_.add_download_to(flags_);
    flags_.flag(
        "--synthetic", &synthetic_,
        "Measure random weights of the published shape that MODEL names, e.g. qwen3.5-35b-a3b");
    flags_.option(
        "--simulate-acceptance", &acceptance_, "P",
        "Accept each draft with probability P instead of by its token, with the same work; for "
        "random weights, whose drafts are never right");
    flags_.option("--prompts", &prompts_file_, "FILE",
                  "Questions to ask instead of the built-in ones: [{\"name\": ..., \"prompt\": "
                  "..., \"max_tokens\": ...}, ...]");
    flags_.option("-n,--max-tokens", &max_tokens_, "N", "Cut every answer off after N tokens");
    flags_.option("--seconds", &seconds_, "S",
                  "Repeat each test until it has decoded for S seconds; the median is reported");
    flags_.option(
        "--shortlist", &shortlist_, "N",
        "In the last steps, choose drafts from a list of the N most common tokens; 0: from all");
    flags_.option(
        "--project", &project_, "MACHINE",
        "Also project the speed of each step on another machine: " + projected_machine_names());
    flags_.choice("-o,--output", &output_, {"table", "md", "json"}, "Format of the result");
    flags_.flag("--json", &json_, "The same as --output json");
    flags_.option("--svg", &svg_, "FILE", "Also draw the chart into this file");
    flags_.footer(
        "Every step switches on one technique more. Speeds are means over the tests; each step "
        "runs twice, and the second run is reported. \"gain\" compares with the step before, \"in "
        "all\" with the baseline. The command fails if drafts change any text.");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    SLIP_TRY_STATUS(model_.take_positional(positional_model_));
    SLIP_TRY_STATUS(model_.check());
    if (json_ && output_ == "md") return error("--json and --output md at once are one too many");
    if (json_) output_ = "json";
    if (max_tokens_ && *max_tokens_ < 2)
      return error("--max-tokens must be at least 2, not ", *max_tokens_);
    if (seconds_ < 0) return error("--seconds must not be negative");
    if (shortlist_ < 0) return error("--shortlist must not be negative");
    if (acceptance_ && !(*acceptance_ >= 0 && *acceptance_ <= 1))
      return error("--simulate-acceptance is a probability from 0 to 1, not ", *acceptance_);
    // A shape's name alone is enough: there are no such files to confuse it with.
    synthetic_ |= ModelSource::is_shape(model_.model);
    if (synthetic_ && model_.model.empty())
      return error("--synthetic needs the name of a shape; there are ",
                   join(ModelSource::shape_names(), ", "));
    if (synthetic_ && !acceptance_)
      return error("random weights never accept a draft, so the ladder would measure nothing; say ",
                   "how many to accept: --simulate-acceptance 0.8");
    SLIP_TRY(there_, find_projected_machine(project_));
    return {};
  }

  Result<int> run() override {
    if (!svg_.empty()) {
      SLIP_TRY(svg_, place_to_write(svg_));
    }
    SLIP_TRY_STATUS(fetch_model(model_));
    std::optional<TalkingModel> talking;
    std::optional<ModelSource> shape;
    if (synthetic_) {
      SLIP_TRY(shape, ModelSource::synthetic(model_.model));
    } else {
      SLIP_TRY([[maybe_unused]] const auto folder, locate_model_beside_shapes(model_.model));
      SLIP_TRY(talking, TalkingModel::open(model_));
    }
    name_ = talking ? talking->name() : model_.model;
    const ModelSource& source = talking ? talking->source() : *shape;
    SLIP_TRY(backend_, make_backend(model_));
    SLIP_TRY(const std::vector<Rung> ladder, plan_ladder(source, *backend_.ops, shortlist_));
    SLIP_TRY(const ModelPlan plan, source.plan({}, *backend_.ops));
    LadderSetup setup{.source = source, .backend = backend_};
    SLIP_TRY(setup.tests, make_tests(talking ? &*talking : nullptr, plan.info.vocabulary));
    SLIP_TRY(setup.memory, memory_request(model_));
    if (!setup.memory.context) setup.memory.context = setup.tests.context();
    setup.seconds = seconds_;
    setup.acceptance = acceptance_;
    // What is going on, and a line that stays for each configuration.
    ProgressLine line(progress_style());
    if (line.changes()) {
      setup.doing = [&](const std::string& text) { line.show(text); };
      setup.done = [&](const std::string& text) { line.say(text); };
    }

    const double roof_seconds = std::min(1.0, 2 * seconds_);
    const Roofs before = measure_roofs(backend_, roof_seconds);
    SLIP_TRY(rungs_, climb_ladder(setup, ladder));
    roofs_ = better_of(before, measure_roofs(backend_, roof_seconds));
    summarize(rungs_, roofs_.read_bytes_per_second);

    std::fputs(rendered().c_str(), stdout);
    if (!svg_.empty())
      SLIP_TRY_STATUS(write_file_atomically(
          svg_, svg_chart(bars(), {.title = "Tokens per second, technique by technique",
                                   .subtitle = subtitle()})));
    return 0;
  }

 private:
  Result<LadderTests> make_tests(const TalkingModel* model, int64_t vocabulary) {
    LadderTests tests;
    if (model && model->tokenizer()) {
      prompts_ = vocabulary < kSmallVocabulary ? "minnow" : "recipe";
      std::vector<LadderPrompt> prompts =
          vocabulary < kSmallVocabulary ? minnow_prompts() : recipe_prompts();
      if (!prompts_file_.empty()) {
        prompts_ = prompts_file_;
        SLIP_TRY(const std::string text, read_text_file(prompts_file_));
        SLIP_TRY(prompts, parse_ladder_prompts(text, prompts_file_));
      }
      SLIP_TRY(tests, written_tests(*model, prompts));
    } else {
      if (!prompts_file_.empty()) return error("--prompts needs a tokenizer, and there is none");
      prompts_ = "random ids";
      tests = meaningless_tests(vocabulary);
    }
    for (LadderTest& test : tests.list)
      test.max_tokens = std::min(test.max_tokens, max_tokens_.value_or(test.max_tokens));
    return tests;
  }

  // One for each rung that was measured; rate(rung) in tokens per second.
  template <class Rate>
  std::vector<Bar> bars_of(const Rate& rate) const {
    std::vector<Bar> bars;
    for (const RungResult& rung : rungs_) {
      if (!rung.skipped.empty()) continue;
      const double value = rate(rung), baseline = bars.empty() ? value : bars.front().value;
      bars.push_back(
          {.name = rung.name,
           .value = value,
           .label = cat(describe_rate(value), " tok/s", acceptance_ ? " simulated · " : " · ",
                        describe_gain(value / baseline))});
    }
    return bars;
  }
  std::vector<Bar> bars() const {
    return bars_of([](const RungResult& rung) { return rung.tokens_per_second; });
  }

  double projected_rate(const RungResult& rung) const {
    return rung.tokens_per_step / projected_seconds(1 / rung.steps_per_second, rung.bytes_per_step,
                                                    roofs_.read_bytes_per_second, *there_);
  }

  JsonObject as_json() const {
    JsonObject object = ladder_json(rungs_, acceptance_.has_value());
    if (there_) {
      object["projection"] = describe_projection(*there_);
      JsonArray rates;
      for (const RungResult& rung : rungs_)
        if (rung.skipped.empty())
          rates.push_back(
              JsonObject{{"name", rung.name}, {"tokens_per_second", projected_rate(rung)}});
      object["projected_steps"] = std::move(rates);
    }
    object["model"] = name_;
    object["synthetic"] = synthetic_;
    object["prompts"] = prompts_;
    if (acceptance_) {
      object["simulated_acceptance"] = *acceptance_;
    } else {
      object["texts_identical"] = true;  // it would have failed otherwise
    }
    object["machine"] = describe_machine(backend_, roofs_);
    return object;
  }

  std::string subtitle() const {
    std::string text = cat(name_, " on ", backend_.description);
    if (acceptance_) text += cat("; simulated: drafts accepted with probability ", *acceptance_);
    return text;
  }

  std::string rendered() const {
    if (output_ == "json") return dump_json(as_json()) + "\n";
    const bool markdown = output_ == "md";
    std::string text = ladder_table(rungs_, markdown ? TableStyle::markdown : TableStyle::plain,
                                    acceptance_.has_value());
    if (!markdown) text += "\n" + bar_chart(bars(), terminal_size().columns);
    text += cat("\n", subtitle(), "; ", prompts_, " prompts; memory reads ",
                describe_rate(roofs_.read_bytes_per_second / 1e9), " GB/s, measured in this run\n");
    if (there_) {
      text += cat("\n", describe_projection(*there_), ":\n",
                  bar_chart(bars_of([&](const RungResult& rung) { return projected_rate(rung); }),
                            terminal_size().columns),
                  "\n");
    }
    if (acceptance_) {
      text += "all the work was done, but tokens were chosen at random: the text means nothing\n";
    } else {
      text += "drafts changed no text: every answer is that of the same weights without drafts\n";
    }
    std::string ignoring;
    for (const RungResult& rung : rungs_)
      for (const TestResult& test : rung.tests)
        if (test.ignores_end && ignoring.find(test.name) == std::string::npos)
          ignoring += (ignoring.empty() ? "" : ", ") + test.name;
    if (!ignoring.empty())
      text += cat("answers too short to time went on behind their end: ", ignoring, "\n");
    return text;
  }

  Flags flags_;
  ModelFlags model_;
  std::string positional_model_, prompts_file_, output_ = "table", svg_, project_;
  std::optional<double> acceptance_;
  std::optional<int64_t> max_tokens_;
  double seconds_ = 0.5;
  int64_t shortlist_ = 0;
  bool synthetic_ = false, json_ = false;

  std::string name_;     // of the model
  std::string prompts_;  // where they come from
  Backend backend_;
  Roofs roofs_;
  std::optional<ProjectedMachine> there_;
  std::vector<RungResult> rungs_;
};

}  // namespace

std::unique_ptr<Verb> make_bench_ladder_verb() { return std::make_unique<BenchLadder>(); }

}  // namespace slip
