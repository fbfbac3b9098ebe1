// eval needle: whether the model finds one sentence in a long text.
#include <cstdio>

#include "base/clock.h"
#include "base/json.h"
#include "engine/generate.h"
#include "engine/generation_config.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/progress_line.h"
#include "slipstream/eval/eval.h"
#include "slipstream/eval/needle_text.h"
#include "slipstream/eval/stats.h"
#include "text/chat_template.h"

namespace slip {
namespace {

// The answer is a short sentence; who needs more is not answering.
constexpr int64_t kAnswerTokens = 64;

// Asks one question after the other.
class Asker {
 public:
  static Result<Asker> open(const std::string& model) {
    SLIP_TRY(const std::filesystem::path folder, locate_model(model));
    SLIP_TRY(Tokenizer tokenizer, Tokenizer::load(folder));
    SLIP_TRY(ChatTemplate chat, ChatTemplate::load(folder));
    SLIP_TRY(const GenerationDefaults defaults, read_generation_defaults(folder));
    return Asker(std::move(tokenizer), std::move(chat), defaults.stop_ids);
  }

  Result<std::vector<int32_t>> prompt(const std::string& message) const {
    ChatTemplate::Request request;
    request.messages.push_back(JsonObject{{"role", "user"}, {"content", message}});
    request.flags["enable_thinking"] = false;
    SLIP_TRY(const std::string text, template_.render(request));
    return tokenizer_.encode(text);
  }

  Result<std::string> answer(Session& session, const std::string& message) const {
    GenerateRequest request;
    SLIP_TRY(request.prompt, prompt(message));
    request.sampling.temperature = 0;
    request.max_tokens = kAnswerTokens;
    request.stop_ids = stop_ids_;
    SLIP_TRY(const GenerateResult result, generate(session, &tokenizer_, request, {}));
    SLIP_TRY_STATUS(check_logits(session.logits()));
    return result.text;
  }

 private:
  Asker(Tokenizer tokenizer, ChatTemplate chat, std::vector<int32_t> stop_ids)
      : tokenizer_(std::move(tokenizer)),
        template_(std::move(chat)),
        stop_ids_(std::move(stop_ids)) {}

  Tokenizer tokenizer_;
  ChatTemplate template_;
  std::vector<int32_t> stop_ids_;
};

// One length and depth.
struct Cell {
  int64_t length = 0;
  double depth = 0;
  int64_t found = 0;
  JsonArray missed{};  // what was hidden and what was answered
};

class EvalNeedle : public Verb {
 public:
  EvalNeedle() : flags_("eval needle", "Test whether the model finds a sentence in a long text") {
    model_.add_to(flags_);
    flags_.option("--lengths", &lengths_, "N,...", "Lengths of the texts in tokens");
    flags_.option(
        "--depths", &depths_, "N",
        "Number of places where the sentence is hidden, from the beginning of a text to its end");
    flags_.option("--trials", &trials_, "N", "Number of texts for each length and place");
    flags_.option("--seed", &seed_, "N", "Seed of the texts");
    flags_.flag("--json", &json_, "Print a JSON object");
    flags_.footer(
        "Hides \"The secret of the lantern is 4718.\" between paragraphs of made-up documentation "
        "and asks for it, thinking off, greedily. Compare recipes with the same seed:\n"
        "  slipstream eval needle -m DIR --lengths 1K,4K,16K --kv-cache k4v4 --trials 4");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    SLIP_TRY_STATUS(model_.check());
    if (depths_ < 1) return error("--depths must be at least 1, not ", depths_);
    if (trials_ < 1) return error("--trials must be at least 1, not ", trials_);
    SLIP_TRY(token_counts_, of_flag("--lengths", parse_counts(lengths_, 1)));
    if (token_counts_.empty()) return error("--lengths names none");
    return {};
  }

  Result<int> run() override {
    const int64_t longest = std::ranges::max(token_counts_);
    SLIP_TRY(const Asker asker, Asker::open(model_.model));
    SLIP_TRY(const Evaluation evaluation,
             load_for_evaluation(model_, {.context = longest + kAnswerTokens,
                                          .advice = "--lengths sets how long the texts are"}));

    const Stopwatch clock;
    ProgressLine line(progress_style());
    Session session(*evaluation.engine);
    const int64_t cells = int64_t(token_counts_.size()) * depths_;
    for (const int64_t length : token_counts_) {
      for (int64_t place = 0; place < depths_; ++place) {
        cells_.push_back({.length = length, .depth = depth_of(place)});
        SLIP_TRY_STATUS(fill(cells_.back(), asker, session));
        line.count("needle", int64_t(cells_.size()), cells);
      }
    }
    const std::string kv = name_of(evaluation.engine->memory().cache_format.kv);
    if (json_) {
      print_json(kv, clock.seconds());
    } else {
      print_grid(kv, clock.seconds());
    }
    return 0;
  }

 private:
  double depth_of(int64_t place) const {
    return depths_ == 1 ? 0.5 : double(place) / double(depths_ - 1);
  }

  Status fill(Cell& cell, const Asker& asker, Session& session) const {
    const auto count = [&](const std::string& message) -> Result<int64_t> {
      SLIP_TRY(const std::vector<int32_t> ids, asker.prompt(message));
      return int64_t(ids.size());
    };
    for (int64_t trial = 0; trial < trials_; ++trial) {
      // Every text is another one, and the same one for every model and recipe.
      const uint64_t number = uint64_t(cells_.size() * size_t(trials_)) + uint64_t(trial);
      SLIP_TRY(const NeedleText text, make_needle_text({.tokens = cell.length,
                                                        .depth = cell.depth,
                                                        .seed = (uint64_t(seed_) << 32) + number},
                                                       count));
      SLIP_TRY(const std::string answer, asker.answer(session, text.message));
      if (names_secret(answer, text.secret)) {
        ++cell.found;
      } else {
        cell.missed.push_back(JsonObject{
            {"secret", text.secret}, {"answer", answer}, {"prompt_tokens", text.tokens}});
      }
    }
    return {};
  }

  int64_t asked() const { return int64_t(cells_.size()) * trials_; }
  int64_t found() const {
    int64_t sum = 0;
    for (const Cell& cell : cells_) sum += cell.found;
    return sum;
  }

  void print_json(const std::string& kv, double seconds) const {
    JsonArray cells;
    for (const Cell& cell : cells_)
      cells.push_back(JsonObject{{"length", cell.length},
                                 {"depth", cell.depth},
                                 {"found", cell.found},
                                 {"trials", trials_},
                                 {"missed", cell.missed}});
    const JsonObject report{{"kv_cache", kv},   {"seed", seed_},      {"found", found()},
                            {"asked", asked()}, {"seconds", seconds}, {"cells", std::move(cells)}};
    std::printf("%s\n", dump_json(report).c_str());
  }

  void print_grid(const std::string& kv, double seconds) const {
    std::printf("tokens \\ depth");
    for (int64_t place = 0; place < depths_; ++place)
      std::printf("  %4.0f %%", 100 * depth_of(place));
    for (size_t i = 0; i < cells_.size(); ++i) {
      if (i % size_t(depths_) == 0)
        std::printf("\n%14lld", static_cast<long long>(cells_[i].length));
      std::printf("  %6s", cell_text(cells_[i]).c_str());
    }
    std::printf("\nfound %lld of %lld with keys and values as %s, in %.1f s\n",
                static_cast<long long>(found()), static_cast<long long>(asked()), kv.c_str(),
                seconds);
  }

  std::string cell_text(const Cell& cell) const {
    if (trials_ == 1) return cell.found ? "found" : "missed";
    return cat(cell.found, "/", trials_);
  }

  Flags flags_;
  ModelFlags model_;
  std::string lengths_ = "256,512,1024,1500";
  std::vector<int64_t> token_counts_;
  int64_t depths_ = 5, trials_ = 1, seed_ = 0;
  bool json_ = false;

  std::vector<Cell> cells_;
};

}  // namespace

std::unique_ptr<Verb> make_eval_needle_verb() { return std::make_unique<EvalNeedle>(); }

}  // namespace slip
