// eval accept: how often drafts are what the model itself would have chosen, along a given text.
#include <cstdio>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/numbers.h"
#include "slipstream/eval/drafts.h"
#include "slipstream/eval/eval.h"
#include "slipstream/eval/windows.h"
#include "text/tokenizer.h"

namespace slip {
namespace {

class EvalAccept : public Verb {
 public:
  EvalAccept() : flags_("eval accept", "Measure how often drafts are what the model chooses") {
    model_.add_to(flags_);
    drafter_.add_drafter_to(flags_);
    flags_.option("--ids", &ids_, "FILE",
                  "File of token ids: a JSON list, a list of lists, or what eval tokenize prints");
    flags_.option("--text", &text_, "FILE", "A text file to read instead of --ids");
    flags_.option("--drafts", &drafts_, "K", "Number of tokens drafted in a row");
    flags_.option("--window", &window_, "N",
                  "Tokens per window; every window starts with an empty context");
    flags_.flag("--json", &json_, "Print a JSON object");
    flags_.footer(
        "Reads the text, drafts at every position and compares each draft with the token that the "
        "model would have chosen there. A second draft counts only where the first is the text's "
        "own token. In text that the model writes itself drafts are right more often; run --stats "
        "prints how often.");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    SLIP_TRY_STATUS(model_.check());
    if (ids_.empty() == text_.empty()) return error("one of --ids and --text is needed");
    if (drafts_ < 1 || drafts_ > kMaxDrafts)
      return error("--drafts is 1 to ", kMaxDrafts, ", not ", drafts_);
    if (window_ < 2) return error("--window must be at least 2, not ", window_);
    return drafter_.check();
  }

  Result<int> run() override {
    SLIP_TRY(const std::vector<std::vector<int32_t>> lists, read_lists());
    const auto windows = windows_of(lists, window_);
    if (windows.empty())
      return error(ids_, text_, ": drafting needs at least two tokens, which this does not have");
    SLIP_TRY(Evaluation evaluation, load_for_evaluation(model_, {.context = window_,
                                                                 .advice = kWindowAdvice,
                                                                 .with_drafter = true,
                                                                 .drafter = &drafter_}));
    if (!evaluation.engine->model().drafter())
      return error(
          "the checkpoint has no MTP layer (tensors mtp.*) and no drafter lies beside it, ",
          "so nothing can be drafted");

    const Stopwatch clock;
    Session session(*evaluation.engine);
    places_.resize(size_t(drafts_));
    SLIP_TRY_STATUS(for_each_window(windows, [&](std::span<const int32_t> window) {
      tokens_ += int64_t(window.size());
      return judge_drafts(session, window, places_);
    }));
    if (json_) {
      print_json(clock.seconds());
    } else {
      print_table(clock.seconds());
    }
    return 0;
  }

 private:
  Result<std::vector<std::vector<int32_t>>> read_lists() const {
    if (text_.empty()) return read_id_lists(ids_);
    SLIP_TRY(const std::filesystem::path folder, locate_model(model_.model));
    SLIP_TRY(const Tokenizer tokenizer, Tokenizer::load(folder));
    SLIP_TRY(const std::string text, read_text_file(text_));
    std::vector<int32_t> ids = tokenizer.encode(text);
    tokenizer.add_bos(ids);
    return std::vector<std::vector<int32_t>>{std::move(ids)};
  }

  double tokens_with(size_t drafts) const {
    return tokens_per_step(std::span(places_).first(drafts));
  }

  void print_json(double seconds) const {
    JsonArray places;
    for (size_t i = 0; i < places_.size(); ++i)
      places.push_back(JsonObject{{"place", i + 1},
                                  {"judged", places_[i].judged},
                                  {"agreed", places_[i].agreed},
                                  {"share", places_[i].share()},
                                  {"tokens_per_step", tokens_with(i + 1)}});
    const JsonObject report{
        {"tokens", tokens_}, {"drafts", std::move(places)}, {"seconds", seconds}};
    std::printf("%s\n", dump_json(report).c_str());
  }

  void print_table(double seconds) const {
    std::printf("draft     judged     agreed    share   tokens per step with that many\n");
    for (size_t i = 0; i < places_.size(); ++i)
      std::printf("%5zu %10s %10s   %4.1f %%   %.2f\n", i + 1,
                  with_commas(places_[i].judged).c_str(), with_commas(places_[i].agreed).c_str(),
                  100 * places_[i].share(), tokens_with(i + 1));
    std::printf("%s tokens in %.1f s\n", with_commas(tokens_).c_str(), seconds);
  }

  Flags flags_;
  ModelFlags model_;
  SpeculateFlags drafter_;
  std::string ids_, text_;
  int64_t drafts_ = 2, window_ = 1024;
  bool json_ = false;

  std::vector<DraftAgreement> places_;
  int64_t tokens_ = 0;
};

}  // namespace

std::unique_ptr<Verb> make_eval_accept_verb() { return std::make_unique<EvalAccept>(); }

}  // namespace slip
