// eval logits, eval mtp, eval ppl: numbers to compare with other implementations.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/clock.h"
#include "base/files.h"
#include "base/json.h"
#include "checkpoint/safetensors_file.h"
#include "slipstream/common/progress_line.h"
#include "slipstream/eval/drafts.h"
#include "slipstream/eval/eval.h"
#include "slipstream/eval/stats.h"
#include "slipstream/eval/windows.h"

namespace slip {
namespace {

// Tensors of f32 rows in a file, which get there as they come: memory holds one row. The first
// write that fails is what finish() tells.
class RowFile {
 public:
  static Result<RowFile> create(const std::filesystem::path& path,
                                const std::vector<std::string>& names, int64_t rows,
                                int64_t width) {
    std::vector<TensorDeclaration> tensors;
    tensors.reserve(names.size());
    for (const std::string& name : names) tensors.push_back({name, StoredType::f32, {rows, width}});
    SLIP_TRY(SafetensorsFile file, SafetensorsFile::create(path, tensors, ""));
    return RowFile(std::move(file));
  }

  void set(size_t tensor, int64_t row, std::span<const float> values) {
    if (written_.ok())
      written_ = file_.write(tensor, uint64_t(row) * values.size_bytes(), std::as_bytes(values));
  }
  Status finish() {
    SLIP_TRY_STATUS(written_);
    return file_.finish();
  }

 private:
  explicit RowFile(SafetensorsFile file) : file_(std::move(file)) {}

  SafetensorsFile file_;
  Status written_;
};

class EvalLogits : public Verb {
 public:
  EvalLogits() : flags_("eval logits", "Write the logits of every position to a file") {
    model_.add_to(flags_);
    flags_.option("--ids", &ids_, "FILE", "File with a JSON list of token ids");
    flags_.option("--out", &out_, "FILE",
                  "File to write: safetensors with `logits` [n, vocabulary]");
    flags_.option("--last", &last_, "N", "Write the last N positions only");
    flags_.flag("--json", &json_, "Print a JSON object");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    if (ids_.empty() || out_.empty()) return error("--ids and --out are needed");
    if (last_ && *last_ < 1) return error("--last must be at least 1, not ", *last_);
    return model_.check();
  }

  Result<int> run() override {
    SLIP_TRY(const std::filesystem::path place, place_to_write(out_));
    SLIP_TRY(const std::vector<int32_t> ids, read_ids(ids_));
    SLIP_TRY(Evaluation evaluation, load_for_evaluation(model_, {.context = int64_t(ids.size())}));
    const auto count = int64_t(ids.size());
    const int64_t first = last_ ? std::max<int64_t>(0, count - *last_) : 0;
    const int64_t vocabulary = evaluation.engine->model().info().vocabulary;
    SLIP_TRY(RowFile file, RowFile::create(place, {"logits"}, count - first, vocabulary));
    const Stopwatch clock;
    ProgressLine line(progress_style());
    Session session(*evaluation.engine);
    SLIP_TRY_STATUS(feed_rows(
        session, ids, [&](int64_t position, std::span<const float> logits, std::span<const float>) {
          if (position >= first) file.set(0, position - first, logits);
          line.count("token", position + 1, count);
        }));
    SLIP_TRY_STATUS(file.finish());
    const JsonObject report{{"tokens", count},
                            {"rows", count - first},
                            {"vocabulary", vocabulary},
                            {"seconds", clock.seconds()},
                            {"out", out_}};
    if (json_) std::printf("%s\n", dump_json(report).c_str());
    return 0;
  }

 private:
  Flags flags_;
  ModelFlags model_;
  std::string ids_, out_;
  std::optional<int64_t> last_;
  bool json_ = false;
};

// Slot p joins the hidden state of position p with token p + 1 and drafts token p + 2.
class EvalMtp : public Verb {
 public:
  EvalMtp() : flags_("eval mtp", "Write the logits of the drafting layer to a file") {
    model_.add_to(flags_);
    flags_.option("--ids", &ids_, "FILE", "File with a JSON list of token ids");
    flags_.option("--out", &out_, "FILE", "File to write: safetensors with `draft1` and `draft2`");
    flags_.option("--steps", &steps_, "N", "Number of drafts per position, 1 or 2");
    flags_.flag("--json", &json_, "Print a JSON object");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    if (ids_.empty() || out_.empty()) return error("--ids and --out are needed");
    if (steps_ < 1 || steps_ > 2) return error("--steps is 1 or 2, not ", steps_);
    return model_.check();
  }

  Result<int> run() override {
    SLIP_TRY(const std::filesystem::path place, place_to_write(out_));
    SLIP_TRY(const std::vector<int32_t> ids, read_ids(ids_));
    if (ids.size() < 2) return error(ids_, ": drafting needs at least two tokens");
    SLIP_TRY(Evaluation evaluation,
             load_for_evaluation(model_, {.context = int64_t(ids.size()), .with_drafter = true}));
    const ModelInfo& info = evaluation.engine->model().info();
    if (!info.drafter) return error("the checkpoint has no MTP layer (tensors mtp.*)");
    if (info.drafter != DrafterKeys::own) return error(kNoDraftsAfterTheText);
    const int64_t slots = int64_t(ids.size()) - 1;

    std::vector<std::string> names{"draft1", "draft2"};
    names.resize(size_t(steps_));
    SLIP_TRY(RowFile file, RowFile::create(place, names, slots, info.vocabulary));
    ProgressLine line(progress_style());
    Session session(*evaluation.engine);
    SLIP_TRY(const std::vector<float> hidden,
             feed_for_drafts(session, ids, [&](int64_t position, std::span<const float>) {
               line.count("token", position + 1, int64_t(ids.size()));
             }));
    int64_t drafted = 0;
    TextDrafts drafts(session);
    drafts.run(
        ids, hidden,
        [&](int64_t slot, int64_t step, std::span<const float> logits) -> std::optional<int32_t> {
          file.set(size_t(step), slot, logits);
          line.count("draft", ++drafted, slots * steps_);
          if (step + 1 == steps_) return std::nullopt;
          // The last slot has no true token to go on with and takes its own draft.
          return slot + 1 < slots ? ids[size_t(slot) + 2] : drafts.best(logits);
        });
    SLIP_TRY_STATUS(file.finish());
    if (json_)
      std::printf(
          "%s\n",
          dump_json(JsonObject{{"slots", slots}, {"steps", steps_}, {"out", out_}}).c_str());
    return 0;
  }

 private:
  Flags flags_;
  ModelFlags model_;
  std::string ids_, out_;
  int64_t steps_ = 2;
  bool json_ = false;
};

class EvalPpl : public Verb {
 public:
  EvalPpl() : flags_("eval ppl", "Measure the perplexity of a text") {
    model_.add_to(flags_);
    text_.add_to(flags_);
    flags_.flag("--json", &json_, "Print a JSON object");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    SLIP_TRY_STATUS(model_.check());
    return text_.check();
  }

  Result<int> run() override {
    SLIP_TRY(const std::vector<std::vector<int32_t>> lists, text_.read());
    SLIP_TRY(Evaluation evaluation,
             load_for_evaluation(model_, {.context = text_.window, .advice = kWindowAdvice}));
    double total = 0;
    int64_t tokens = 0;
    const Stopwatch clock;
    Session session(*evaluation.engine);
    const auto evaluate = [&](std::span<const int32_t> ids) {
      session.clear();
      return feed_rows(
          session, ids,
          [&](int64_t position, std::span<const float> logits, std::span<const float>) {
            if (size_t(position) + 1 >= ids.size()) return;
            total += Distribution(logits).negative_log_likelihood(ids[size_t(position) + 1]);
            ++tokens;
          });
    };
    SLIP_TRY_STATUS(for_each_window(windows_of(lists, text_.window), evaluate));
    const double mean = total / double(tokens);
    if (json_) {
      const JsonObject report{{"nll", mean},
                              {"perplexity", std::exp(mean)},
                              {"tokens", tokens},
                              {"seconds", clock.seconds()}};
      std::printf("%s\n", dump_json(report).c_str());
    } else {
      std::printf("perplexity %.4f (%.5f nats per token) over %lld tokens in %.1f s\n",
                  std::exp(mean), mean, static_cast<long long>(tokens), clock.seconds());
    }
    return 0;
  }

 private:
  Flags flags_;
  ModelFlags model_;
  WindowFlags text_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_eval_logits_verb() { return std::make_unique<EvalLogits>(); }
std::unique_ptr<Verb> make_eval_mtp_verb() { return std::make_unique<EvalMtp>(); }
std::unique_ptr<Verb> make_eval_ppl_verb() { return std::make_unique<EvalPpl>(); }

}  // namespace slip
