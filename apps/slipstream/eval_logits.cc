// eval logits, eval mtp, eval ppl: numbers to compare with other implementations.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "base/clock.h"
#include "base/json.h"
#include "checkpoint/safetensors.h"
#include "eval.h"

namespace slip {
namespace {

// Rows of f32 that become one tensor of a safetensors file.
class RowWriter {
 public:
  RowWriter(std::string name, int64_t width) : name_(std::move(name)), width_(width) {}

  void append(std::span<const float> row) { values_.insert(values_.end(), row.begin(), row.end()); }
  void set(int64_t row, std::span<const float> values) {
    values_.resize(std::max(values_.size(), size_t((row + 1) * width_)));
    std::copy(values.begin(), values.end(), values_.begin() + row * width_);
  }
  std::span<const float> row(int64_t row) const {
    return std::span(values_).subspan(size_t(row * width_), size_t(width_));
  }
  TensorToWrite tensor() const {
    return {name_,
            StoredType::f32,
            {int64_t(values_.size()) / width_, width_},
            std::as_bytes(std::span(values_))};
  }

 private:
  std::string name_;
  int64_t width_;
  std::vector<float> values_;
};

int32_t best(std::span<const float> logits) {
  return int32_t(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

class EvalLogits : public Verb {
 public:
  EvalLogits() : flags_("eval logits", "Write the logits of every position to a file") {
    model_.add_to(flags_);
    flags_.option("--ids", &ids_, "FILE", "A JSON list of token ids");
    flags_.option("--out", &out_, "FILE",
                  "Where to write: safetensors with `logits` [n, vocabulary]");
    flags_.option("--last", &last_, "N", "Only the last N positions");
    flags_.flag("--json", &json_, "Print a JSON object");
  }
  Flags& flags() override { return flags_; }

  Result<int> run() override {
    if (ids_.empty() || out_.empty()) return error("--ids and --out are needed");
    SLIP_TRY(const std::vector<int32_t> ids, read_ids(ids_));
    SLIP_TRY(Evaluation evaluation, load_for_evaluation(model_, false, int64_t(ids.size())));
    const auto count = int64_t(ids.size());
    const int64_t first = last_ ? std::max<int64_t>(0, count - *last_) : 0;
    RowWriter rows("logits", evaluation.engine->model().info().vocabulary);
    const Stopwatch clock;
    Session session(*evaluation.engine);
    SLIP_TRY_STATUS(session.feed_each(
        ids, [&](int64_t position, std::span<float> logits, std::span<const float>) {
          if (position >= first) rows.append(logits);
        }));
    const TensorToWrite tensor = rows.tensor();
    SLIP_TRY_STATUS(write_safetensors(out_, {&tensor, 1}));
    const JsonObject report{{"tokens", count},
                            {"rows", tensor.shape[0]},
                            {"vocabulary", tensor.shape[1]},
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
    flags_.option("--ids", &ids_, "FILE", "A JSON list of token ids");
    flags_.option("--out", &out_, "FILE", "Where to write: safetensors with draft1, draft2");
    flags_.option("--steps", &steps_, "N", "Drafts per position, 1 or 2");
    flags_.flag("--json", &json_, "Print a JSON object");
  }
  Flags& flags() override { return flags_; }

  Result<int> run() override {
    if (ids_.empty() || out_.empty()) return error("--ids and --out are needed");
    if (steps_ < 1 || steps_ > 2) return error("--steps is 1 or 2, not ", steps_);
    SLIP_TRY(const std::vector<int32_t> ids, read_ids(ids_));
    if (ids.size() < 2) return error(ids_, ": drafting needs at least two tokens");
    SLIP_TRY(Evaluation evaluation, load_for_evaluation(model_, true, int64_t(ids.size()) + 1));
    Engine& engine = *evaluation.engine;
    Model& model = engine.model();
    if (!model.info().has_mtp) return error("the checkpoint has no MTP layer (tensors mtp.*)");
    const int64_t slots = int64_t(ids.size()) - 1, width = model.info().hidden;

    std::vector<float> hidden(size_t(slots * width)), next(size_t(slots * width));
    Session session(engine);
    SLIP_TRY_STATUS(
        session.feed_each(ids, [&](int64_t position, std::span<float>, std::span<const float> row) {
          if (position < slots)
            std::copy(row.begin(), row.end(), hidden.begin() + position * width);
        }));

    RowWriter draft1("draft1", model.info().vocabulary), draft2("draft2", model.info().vocabulary);
    Tensor logits(Device::cpu, DType::f32, {1, model.info().vocabulary});
    const auto draft = [&](int64_t position, int32_t token, float* in, float* out) {
      const Span span{.first_row = 0,
                      .rows = 1,
                      .start = position,
                      .state_slot = session.state_slot(),
                      .pages = session.pages()};
      const int64_t row = 0;
      const auto view = [&](auto* data, DType type, const Shape& shape) {
        return View{reinterpret_cast<std::byte*>(data), type, shape};
      };
      model.draft({.ids = view(&token, DType::i32, {1}),
                   .hidden = view(in, DType::f32, {1, width}),
                   .spans = {&span, 1},
                   .outputs = {&row, 1},
                   .logits = logits.view,
                   .next_hidden = view(out, DType::f32, {1, width})},
                  engine.cache());
      return std::span<const float>(logits.view.f32(), size_t(logits.view.count()));
    };
    for (int64_t p = 0; p < slots; ++p)
      draft1.append(
          draft(p, ids[size_t(p + 1)], &hidden[size_t(p * width)], &next[size_t(p * width)]));
    // The second step of slot p sees the first-step keys of slots 0..p and writes its own over that
    // of slot p + 1; from the back, nothing is overwritten before it was used. The last slot has no
    // true token p + 2 and takes its own draft.
    const auto follower = [&](int64_t p) {
      return p + 2 < int64_t(ids.size()) ? ids[size_t(p + 2)] : best(draft1.row(p));
    };
    for (int64_t p = slots - 1; p >= 0 && steps_ == 2; --p)
      draft2.set(p,
                 draft(p + 1, follower(p), &next[size_t(p * width)], &hidden[size_t(p * width)]));
    std::vector<TensorToWrite> tensors{draft1.tensor()};
    if (steps_ == 2) tensors.push_back(draft2.tensor());
    SLIP_TRY_STATUS(write_safetensors(out_, tensors));
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
  EvalPpl() : flags_("eval ppl", "Perplexity of a text") {
    model_.add_to(flags_);
    flags_.option("--ids", &ids_, "FILE", "A JSON list of token ids, or a list of such lists");
    flags_.option("--window", &window_, "N", "Tokens per window; each starts from nothing");
    flags_.flag("--json", &json_, "Print a JSON object");
  }
  Flags& flags() override { return flags_; }

  Result<int> run() override {
    if (ids_.empty()) return error("--ids is needed");
    if (window_ < 2) return error("--window must be at least 2, not ", window_);
    SLIP_TRY(const std::vector<std::vector<int32_t>> lists, read_id_lists(ids_));
    SLIP_TRY(Evaluation evaluation, load_for_evaluation(model_, false, window_));
    double total = 0;
    int64_t tokens = 0;
    const Stopwatch clock;
    Session session(*evaluation.engine);
    for (const std::vector<int32_t>& list : lists) {
      for (size_t begin = 0; begin + 1 < list.size(); begin += size_t(window_)) {
        const auto ids =
            std::span(list).subspan(begin, std::min(size_t(window_), list.size() - begin));
        session.clear();
        SLIP_TRY_STATUS(session.feed_each(
            ids, [&](int64_t position, std::span<float> logits, std::span<const float>) {
              if (size_t(position) + 1 >= ids.size()) return;
              total += negative_log_likelihood(logits, ids[size_t(position) + 1]);
              ++tokens;
            }));
      }
    }
    if (tokens == 0) return error(ids_, ": nothing to predict");
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
  static double negative_log_likelihood(std::span<const float> logits, int32_t id) {
    const float peak = *std::max_element(logits.begin(), logits.end());
    double sum = 0;
    for (const float logit : logits) sum += std::exp(double(logit) - double(peak));
    return std::log(sum) + double(peak) - double(logits[size_t(id)]);
  }

  Flags flags_;
  ModelFlags model_;
  std::string ids_;
  int64_t window_ = 1024;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_eval_logits_verb() { return std::make_unique<EvalLogits>(); }
std::unique_ptr<Verb> make_eval_mtp_verb() { return std::make_unique<EvalMtp>(); }
std::unique_ptr<Verb> make_eval_ppl_verb() { return std::make_unique<EvalPpl>(); }

}  // namespace slip
