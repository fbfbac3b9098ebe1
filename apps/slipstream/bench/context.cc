// bench context: what a token costs as the text behind it grows.
#include <algorithm>
#include <cstdio>

#include "base/clock.h"
#include "slipstream/bench/arbitrary_ids.h"
#include "slipstream/bench/timed_ops.h"
#include "slipstream/common/backend.h"
#include "slipstream/common/loading_bar.h"
#include "slipstream/common/machine.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/numbers.h"
#include "slipstream/common/setting_flags.h"
#include "slipstream/common/terminal.h"
#include "slipstream/pull/model.h"
#include "slipstream/verb.h"

namespace slip {
namespace {

// Microseconds per token at one depth.
struct Depth {
  int64_t tokens = 0;
  double prompt = 0;  // while the text grew to this depth
  double decode = 0, attention = 0, delta_net = 0, other = 0;
};

class BenchContext : public Verb {
 public:
  BenchContext() : flags_("bench context", "Measure what a token costs as its context grows") {
    flags_.positional("MODEL", &positional_model_,
                      "A folder, a repository id or the name of a shape");
    model_.add_to(flags_);
    model_.add_download_to(flags_);
    flags_.option("--tokens", &tokens_, "N",
                  "Length of the text in tokens, e.g. 256K; default: the model's whole context");
    flags_.option("--decoded", &decoded_, "N", "Number of tokens decoded one by one at each depth");
    flags_.flag("--json", &json_, "Print a JSON object");
    flags_.footer(
        "Reads one long text of random tokens and stops at 1K, 2K, 4K, ... to decode some. "
        "Attention should grow with the text, delta-net layers should not.\n\n"
        "  slipstream bench context qwen3.5-nano --kv-cache k4v4   256K tokens in minutes");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    if (decoded_ < 1) return error("--decoded must be at least 1, not ", decoded_);
    SLIP_TRY_STATUS(model_.take_positional(positional_model_));
    SLIP_TRY_STATUS(model_.check());
    if (!tokens_) return {};
    SLIP_TRY(const uint64_t wanted, of_flag("--tokens", parse_context(*tokens_)));
    text_ = int64_t(wanted);
    return {};
  }

  Result<int> run() override {
    SLIP_TRY_STATUS(fetch_model(model_));
    SLIP_TRY(Backend backend, make_backend(model_));
    if (!backend.ops->memory().on_host())
      return error("bench context keeps the time of every operation, which a GPU does not tell; ",
                   "--device cpu, or bench -d 1024,8192,... for whole steps on a GPU");
    TimedOps ops(std::move(backend.ops));
    SLIP_TRY(const ModelSource source, open_model_or_shape(model_));
    EngineOptions options;
    SLIP_TRY(options.memory, memory_request(model_));
    if (!options.memory.context) options.memory.context = source.max_context();
    if (text_) options.memory.context = text_;
    if (*options.memory.context <= decoded_)
      return error("a text of ", *options.memory.context, " tokens is not longer than the ",
                   decoded_, " that are decoded at each depth; --tokens sets the one, --decoded ",
                   "the other");
    options.weights = weight_choices(model_);
    Result<std::unique_ptr<Engine>> loaded =
        Engine::load(source, options, ops, *backend.pool, loading_bar(model_.name()));
    if (!loaded.ok() && text_)
      return advise_on_context(std::move(loaded).failure(), "--tokens sets how long the text is");
    SLIP_TRY(const std::unique_ptr<Engine> engine, std::move(loaded));

    ignore_broken_pipes();
    const InterruptScope interrupts(InterruptScope::Again::ends_program);
    if (!json_) print_header(*engine);
    Session session(*engine);
    std::vector<Depth> depths;
    for (const int64_t depth : stops(engine->context())) {
      const Result<Depth> measured = measure(session, ops, depth);
      if (InterruptScope::interrupted()) break;  // what was measured before is kept
      if (!measured.ok()) return measured.failure();
      depths.push_back(measured.value());
      if (!json_) print(depths.back());
    }
    if (json_) std::printf("%s\n", dump_json(as_json(*engine, depths)).c_str());
    return InterruptScope::interrupted() ? kInterruptedStatus : 0;
  }

 private:
  // 1K, 2K, 4K, ... and the end, each with room for the tokens decoded there.
  std::vector<int64_t> stops(int64_t context) const {
    std::vector<int64_t> depths;
    for (int64_t depth = 1024; depth + decoded_ < context; depth *= 2) depths.push_back(depth);
    depths.push_back(context - decoded_);
    return depths;
  }

  Result<Depth> measure(Session& session, TimedOps& ops, int64_t depth) const {
    Depth result;
    result.tokens = depth;
    const int64_t vocabulary = session.engine().model().info().vocabulary;
    const auto start = int64_t(session.tokens().size());
    std::vector<int32_t> ids;
    for (int64_t i = start; i < depth; ++i) ids.push_back(arbitrary_id(i, vocabulary));
    const Stopwatch prompt;
    SLIP_TRY_STATUS(
        session.feed(ids, [](int64_t, int64_t) { return !InterruptScope::interrupted(); }));
    result.prompt = 1e6 * prompt.seconds() / double(std::max<int64_t>(depth - start, 1));

    ops.reset();
    const Stopwatch decode;
    for (int64_t i = 0; i < decoded_; ++i) {
      const int32_t id = arbitrary_id(depth + i, vocabulary);
      SLIP_TRY_STATUS(session.feed({&id, 1}));
    }
    const double per_token = 1e6 / double(decoded_);
    result.decode = decode.seconds() * per_token;
    result.attention = ops.seconds("attention") * per_token;
    result.delta_net = (ops.seconds("delta_net") + ops.seconds("causal_conv")) * per_token;
    result.other = result.decode - result.attention - result.delta_net;
    return result;
  }

  void print_header(Engine& engine) const {
    std::printf("%s, %s keys and values, microseconds per token\n", model_.name().c_str(),
                name_of(engine.memory().cache_format.kv).c_str());
    std::printf("%10s %12s %12s %12s %12s %12s\n", "context", "prompt", "decode", "attention",
                "delta net", "other");
    std::fflush(stdout);
  }

  static void print(const Depth& depth) {
    std::printf("%10s %12.1f %12.1f %12.1f %12.1f %12.1f\n", with_commas(depth.tokens).c_str(),
                depth.prompt, depth.decode, depth.attention, depth.delta_net, depth.other);
    std::fflush(stdout);
  }

  JsonObject as_json(Engine& engine, const std::vector<Depth>& depths) const {
    JsonArray list;
    for (const Depth& depth : depths)
      list.push_back(JsonObject{{"context", depth.tokens},
                                {"prompt_us", depth.prompt},
                                {"decode_us", depth.decode},
                                {"attention_us", depth.attention},
                                {"delta_net_us", depth.delta_net},
                                {"other_us", depth.other}});
    return {{"model", model_.name()},
            {"kv_cache", name_of(engine.memory().cache_format.kv)},
            {"depths", std::move(list)},
            {"machine", describe_machine()}};
  }

  Flags flags_;
  ModelFlags model_;
  std::string positional_model_;
  std::optional<std::string> tokens_;
  std::optional<int64_t> text_;  // what settle() makes of it
  int64_t decoded_ = 16;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_bench_context_verb() { return std::make_unique<BenchContext>(); }

}  // namespace slip
