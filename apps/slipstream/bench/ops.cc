// bench ops: how fast each kernel is at the shapes of a model, against the memory's speed.
#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "slipstream/bench/arbitrary_ids.h"
#include "slipstream/bench/recording_ops.h"
#include "slipstream/common/backend.h"
#include "slipstream/common/loading_bar.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/roofs.h"
#include "slipstream/common/setting_flags.h"
#include "slipstream/common/speculate_flags.h"
#include "slipstream/pull/model.h"
#include "slipstream/verb.h"

namespace slip {
namespace {

// Calls of one kind, over all layers.
struct Kind {
  std::string label;
  std::vector<const RecordedCall*> calls;
  double seconds = 0;  // per call

  double bytes() const {
    double sum = 0;
    for (const RecordedCall* call : calls) sum += double(call->bytes);
    return sum / double(calls.size());
  }
  double seconds_per_step() const { return seconds * double(calls.size()); }
};

class BenchOps : public Verb {
 public:
  BenchOps() : flags_("bench ops", "Measure the speed of each kernel at the shapes of a model") {
    flags_.positional("MODEL", &positional_model_,
                      "A folder, a repository id or the name of a shape");
    model_.add_to(flags_);
    model_.add_download_to(flags_);
    drafting_.add_drafter_to(flags_);
    flags_.option("--rows", &rows_, "N,...",
                  "Tokens per step: 1 is plain decoding, a few verify drafts, many read a prompt");
    flags_.option("--depth", &depth_, "N", "Tokens that the context holds before the step");
    flags_.option("--repeat", &repeat_, "N",
                  "Number of times that the calls of a step are repeated");
    flags_.footer(
        "Runs a step, then all its calls of one kind, one after the other, again and again: each "
        "layer has weights of its own, so they come from memory. In the end the same for one "
        "draft, if the model drafts. Bytes of experts are those that random routing is expected to "
        "need.");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    SLIP_TRY(row_counts_, of_flag("--rows", parse_counts(rows_, 1)));
    if (row_counts_.empty()) return error("--rows names no number of rows");
    if (depth_ < 0) return error("--depth must not be negative: ", depth_);
    if (repeat_ < 1) return error("--repeat must be at least 1, not ", repeat_);
    SLIP_TRY_STATUS(model_.take_positional(positional_model_));
    SLIP_TRY_STATUS(drafting_.check());
    return model_.check();
  }

  Result<int> run() override {
    SLIP_TRY_STATUS(fetch_model(model_));
    const std::vector<int64_t>& rows = row_counts_;
    SLIP_TRY(Backend backend, make_backend(model_));
    RecordingOps ops(*backend.ops);
    SLIP_TRY(const ModelSource source, open_model_or_shape(model_));
    EngineOptions options;
    SLIP_TRY(options.memory, memory_request(model_));
    if (!options.memory.context)
      options.memory.context = depth_ + 2 * std::ranges::max(rows) + kMaxDrafts + 1;
    options.weights = weight_choices(model_);
    drafting_.apply_drafter(options.weights);
    options.max_drafts = kMaxDrafts;
    Result<std::unique_ptr<Engine>> loaded =
        Engine::load(source, options, ops, *backend.pool, loading_bar(model_.name()));
    if (!loaded.ok() && !model_.context)
      return advise_on_context(std::move(loaded).failure(),
                               "--depth and --rows set how long the text is");
    SLIP_TRY(const std::unique_ptr<Engine> engine, std::move(loaded));
    const double bandwidth = measure_roofs(backend, 0.5).read_bytes_per_second;
    std::printf("%s; memory reads %.1f GB/s\n", backend.description.c_str(), bandwidth / 1e9);
    for (const int64_t count : rows) {
      if (count > ops.prompt_rows()) return error("--rows takes 1 to ", ops.prompt_rows());
      SLIP_TRY_STATUS(measure_rows(*engine, ops, *backend.ops, count, bandwidth));
    }
    SLIP_TRY_STATUS(measure_draft(*engine, ops, *backend.ops, bandwidth));
    return 0;
  }

 private:
  // So many ids more than there are to be before.
  std::vector<int32_t> text_with(int64_t more, Engine& engine) const {
    return arbitrary_ids(std::max<int64_t>(depth_, 1) + more, engine.model().info().vocabulary);
  }

  Status measure_rows(Engine& engine, RecordingOps& recorder, Ops& ops, int64_t rows,
                      double bandwidth) {
    Session session(engine);
    const std::vector<int32_t> ids = text_with(rows, engine);
    const std::span<const int32_t> all(ids);
    SLIP_TRY_STATUS(session.feed(all.first(all.size() - size_t(rows))));
    const bool verifies = rows <= kMaxDrafts + 1;
    if (verifies && rows > 1) {  // a step before, whose accepted rows become part of the state
      SLIP_TRY_STATUS(session.verify(all.last(size_t(rows))));
      session.accept(rows);
    }
    recorder.start();
    if (verifies) {
      SLIP_TRY_STATUS(session.verify(all.last(size_t(rows))));
      session.accept(rows);
    } else {
      SLIP_TRY_STATUS(session.feed(all.last(size_t(rows))));
    }
    recorder.stop();
    measure(recorder, ops, cat(rows, rows == 1 ? " row" : " rows"), bandwidth);
    return {};
  }

  // The pass of the drafter for one draft, if there is one.
  Status measure_draft(Engine& engine, RecordingOps& recorder, Ops& ops, double bandwidth) {
    Session session(engine);
    if (!session.can_draft()) return {};
    const std::vector<int32_t> ids = text_with(1, engine);
    SLIP_TRY_STATUS(session.feed(std::span(ids).first(ids.size() - 1)));
    const DraftPasses::Question question{session.sequence(), ids.back()};
    recorder.start();
    session.draft_passes().first_round({&question, 1});
    recorder.stop();
    measure(recorder, ops, "1 draft", bandwidth);
    return {};
  }

  // What was recorded, kind by kind and as a whole.
  void measure(const RecordingOps& recorder, Ops& ops, const std::string& title,
               double bandwidth) const {
    std::vector<Kind> kinds;
    for (const RecordedCall& call : recorder.calls()) {
      auto kind = std::ranges::find(kinds, call.label, &Kind::label);
      if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {call.label, {}});
      kind->calls.push_back(&call);
    }
    for (Kind& kind : kinds) kind.seconds = time_calls(kind, recorder.spans(), ops);
    Kind whole{"everything in its order", {}};
    for (const RecordedCall& call : recorder.calls()) whole.calls.push_back(&call);
    whole.seconds = time_calls(whole, recorder.spans(), ops);
    std::ranges::sort(kinds, std::ranges::greater{}, &Kind::seconds_per_step);
    print(kinds, title, bandwidth);
    std::printf("%26.1f us for everything in its order\n", whole.seconds_per_step() * 1e6);
  }

  // As a step of its own, so that a backend may record it.
  double time_calls(const Kind& kind, std::span<const Span> spans, Ops& ops) const {
    const StepKey key{.owner = &kind, .kind = ++steps_, .rows = rows_of(spans), .outputs = 0};
    const auto step = [&] {
      ops.run_step(key, spans, [&] {
        for (const RecordedCall* call : kind.calls) call->again(ops, spans);
      });
    };
    const auto finish = [&] {
      std::byte byte;
      const Tensor mark(ops.memory(), DType::u8, {1});
      ops.memory().download(&byte, mark.view.data, 1);
    };
    for (int i = 0; i < 3; ++i) step();
    finish();
    const Stopwatch clock;
    for (int64_t i = 0; i < repeat_; ++i) step();
    finish();
    return clock.seconds() / double(repeat_) / double(kind.calls.size());
  }

  static int64_t rows_of(std::span<const Span> spans) {
    int64_t rows = 0;
    for (const Span& span : spans) rows += span.rows;
    return rows;
  }

  static void print(const std::vector<Kind>& kinds, const std::string& title, double bandwidth) {
    std::printf("\n%s\n%9s %6s %9s %9s %8s  %s\n", title.c_str(), "us/call", "calls", "us/step",
                "MB/call", "% roof", "operation");
    double total = 0;
    for (const Kind& kind : kinds) {
      total += kind.seconds_per_step();
      std::printf("%9.2f %6zu %9.1f %9.2f ", kind.seconds * 1e6, kind.calls.size(),
                  kind.seconds_per_step() * 1e6, kind.bytes() / 1e6);
      if (kind.bytes() > 0)
        std::printf("%8.0f", 100 * kind.bytes() / kind.seconds / bandwidth);
      else
        std::printf("%8s", "");
      std::printf("  %s\n", kind.label.c_str());
    }
    std::printf("%26.1f us in all\n", total * 1e6);
    std::fflush(stdout);
  }

  Flags flags_;
  ModelFlags model_;
  SpeculateFlags drafting_;
  std::string positional_model_, rows_ = "1,3";
  std::vector<int64_t> row_counts_;
  int64_t depth_ = 0, repeat_ = 20;
  mutable int64_t steps_ = 0;
};

}  // namespace

std::unique_ptr<Verb> make_bench_ops_verb() { return std::make_unique<BenchOps>(); }

}  // namespace slip
