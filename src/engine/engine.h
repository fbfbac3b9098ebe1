// A loaded model with its cache: what sessions run on.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/memory_plan.h"
#include "models/model_source.h"

namespace slip {

struct EngineOptions {
  MemoryRequest memory;
  bool with_mtp = false;
  int64_t max_rows = 512;  // tokens of a prompt that are computed together
  int64_t logit_rows = 1;  // rows of logits that one step may produce
};

class Engine {
 public:
  // What load() would take; the same numbers that it then uses.
  static Result<MemoryPlan> plan(const ModelSource& source, const EngineOptions& options,
                                 const Ops& ops);
  static Result<std::unique_ptr<Engine>> load(const ModelSource& source,
                                              const EngineOptions& options, Ops& ops,
                                              ThreadPool& pool, const LoadProgress& progress);

  Model& model() { return *model_; }
  Cache& cache() { return *cache_; }
  const MemoryPlan& memory() const { return plan_; }
  int64_t context() const { return plan_.context; }

 private:
  friend class Session;

  Engine() = default;

  MemoryPlan plan_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Cache> cache_;
  Tensor ids_;     // i32 [max_rows]
  Tensor logits_;  // [logit_rows, vocabulary]
  Tensor hidden_;  // [max_rows, hidden], only with MTP
};

// One sequence of tokens in the engine. Sessions of one engine take turns; they are not meant for
// several threads.
class Session {
 public:
  explicit Session(Engine& engine);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::vector<int32_t>& tokens() const { return tokens_; }

  // Called after every chunk of a long prompt; false stops.
  using Progress = std::function<bool(int64_t done, int64_t total)>;

  // Makes the session hold exactly `ids`: continues if it holds a beginning of them, starts over
  // otherwise. Returns how many tokens did not have to be computed.
  Result<int64_t> sync(std::span<const int32_t> ids, const Progress& progress = {});

  // Appends tokens; logits() are then those of the last one. One token allocates nothing.
  Status feed(std::span<const int32_t> ids, const Progress& progress = {});

  // Appends tokens and hands out the logits (and, with MTP, the hidden state) of each.
  using EachRow =
      std::function<void(int64_t position, std::span<float> logits, std::span<const float> hidden)>;
  Status feed_each(std::span<const int32_t> ids, const EachRow& each);

  std::span<float> logits();

  void clear();

  // Where its memory lies, for passes of the MTP layer.
  int32_t state_slot() const { return Cache::state_slot(sequence_); }
  std::span<const int32_t> pages() const { return engine_.cache_->pages(sequence_); }

  // Whether another token fits.
  bool has_room() const { return int64_t(tokens_.size()) < engine_.context(); }

 private:
  // One step over at most max_rows ids, with logits for the last `outputs` rows.
  Status step(std::span<const int32_t> ids, int64_t outputs);
  // Whether `ids` may follow `before` tokens.
  Status check_ids(std::span<const int32_t> ids, int64_t before) const;

  Engine& engine_;
  SequenceId sequence_;
  std::vector<int32_t> tokens_;
  std::vector<int64_t> output_rows_;
};

}  // namespace slip
