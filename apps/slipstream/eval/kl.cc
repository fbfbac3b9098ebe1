// eval kl: what a coarser cache, coarser weights or another checkpoint does to the distribution.
#include <cstdio>

#include "base/clock.h"
#include "base/json.h"
#include "slipstream/common/backend.h"
#include "slipstream/common/numbers.h"
#include "slipstream/eval/comparison.h"
#include "slipstream/eval/eval.h"
#include "slipstream/eval/windows.h"

namespace slip {
namespace {

class EvalKl : public Verb {
 public:
  EvalKl() : flags_("eval kl", "Measure what coarser weights or a coarser cache change") {
    model_.add_to(flags_);
    text_.add_to(flags_);
    flags_.option("--against", &against_, "RECIPE",
                  "--kv-cache of the reference that the model is compared with");
    flags_.option("--reference-model", &reference_model_, "MODEL",
                  "Checkpoint that the model is compared with; default: the same one");
    flags_.flag("--json", &json_, "Print a JSON object");
    flags_.footer(
        "The model is loaded twice: as the flags say, and as a reference with the weights as in "
        "the files. Examples:\n"
        "  slipstream eval kl -m DIR --ids text.json --kv-cache k4v4\n"
        "  slipstream eval kl -m DIR --ids text.json --head int8 --against bf16\n"
        "  slipstream eval kl -m INT4_DIR --ids text.json --reference-model BF16_DIR");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    SLIP_TRY_STATUS(model_.check());
    SLIP_TRY([[maybe_unused]] const auto against, of_flag("--against", kv_choice(against_)));
    return text_.check();
  }

  Result<int> run() override {
    SLIP_TRY(const std::vector<std::vector<int32_t>> lists, text_.read());
    ModelFlags plain = model_;
    plain.kv_cache = against_;
    plain.head = plain.shared_experts = "keep";
    if (!reference_model_.empty()) plain.model = reference_model_;

    SLIP_TRY(const Backend backend, make_backend(model_));
    const EvaluationNeeds needs{.context = text_.window, .advice = kWindowAdvice};
    SLIP_TRY(const auto reference, load_engine(backend, plain, needs));
    SLIP_TRY(const auto candidate, load_engine(backend, model_, needs));
    const int64_t vocabulary = candidate->model().info().vocabulary;
    if (const int64_t other = reference->model().info().vocabulary; other != vocabulary)
      return error("only models of one vocabulary can be compared: the reference has ", other,
                   " tokens, the model ", vocabulary);

    const Stopwatch clock;
    Comparison comparison(*reference, *candidate);
    SLIP_TRY_STATUS(for_each_window(
        windows_of(lists, text_.window),
        [&](std::span<const int32_t> window) { return comparison.add_window(window); }));
    if (json_) {
      print_json(comparison, clock.seconds());
    } else {
      print_text(comparison, clock.seconds());
    }
    return 0;
  }

 private:
  static void print_json(const Comparison& comparison, double seconds) {
    const JsonObject report{{"positions", comparison.positions()},
                            {"mean_kl", comparison.mean_kl()},
                            {"kl_99th_percentile", comparison.kl_quantile(0.99)},
                            {"top1_agreement", comparison.agreement()},
                            {"predicted", comparison.predicted()},
                            {"reference_perplexity", comparison.reference_perplexity()},
                            {"perplexity", comparison.candidate_perplexity()},
                            {"perplexity_change_percent", 100 * comparison.perplexity_change()},
                            {"seconds", seconds}};
    std::printf("%s\n", dump_json(report).c_str());
  }

  static void print_text(const Comparison& comparison, double seconds) {
    std::printf("KL(reference || model)  mean %.6f nats, 99th percentile %.6f\n",
                comparison.mean_kl(), comparison.kl_quantile(0.99));
    std::printf("same first choice       %.2f %%\n", 100 * comparison.agreement());
    std::printf("perplexity              %.4f, reference %.4f: %+.3f %%\n",
                comparison.candidate_perplexity(), comparison.reference_perplexity(),
                100 * comparison.perplexity_change());
    std::printf("%s positions in %.1f s\n", with_commas(comparison.positions()).c_str(), seconds);
  }

  Flags flags_;
  ModelFlags model_;
  WindowFlags text_;
  std::string against_ = "f32", reference_model_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_eval_kl_verb() { return std::make_unique<EvalKl>(); }

}  // namespace slip
