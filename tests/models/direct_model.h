// A model driven through Model::forward(), with a cache of several sequences.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "models/model_source.h"
#include "tests/golden/loaded_model.h"

namespace slip {

class DirectModel {
 public:
  DirectModel(const std::filesystem::path& folder, const Backend& backend, int threads = 2,
              const KvRecipe& kv = {})
      : pool_(threads), ops_(backend.make(pool_)) {
    const Result<ModelSource> source = ModelSource::open(folder);
    check(source.ok(), source.ok() ? "" : source.failure().message);
    auto loaded =
        source.value().load({.max_rows = kMaxRows, .context = kContext}, *ops_, pool_, {});
    check(loaded.ok(), loaded.ok() ? "" : loaded.failure().message);
    model_ = std::move(loaded).value();
    cache_ =
        std::make_unique<Cache>(model_->cache_specs(), CacheFormat{.kv = kv, .step_rows = kMaxRows},
                                CacheSize{.sequences = 3, .pages = 3 * kContext / kPageLen});
  }

  Cache& cache() { return *cache_; }
  int64_t vocabulary() const { return model_->info().vocabulary; }

  // Tokens of one sequence in a step.
  struct Part {
    SequenceId sequence;
    int64_t start;
    std::span<const int32_t> ids;
  };

  // One step; logits of every row.
  std::vector<float> step(std::span<const Part> parts) {
    std::vector<Span> spans;
    std::vector<int32_t> ids;
    std::vector<int64_t> outputs;
    for (const Part& part : parts) {
      const auto rows = int64_t(part.ids.size());
      check(cache_->reserve(part.sequence, part.start + rows).ok(), "the cache is full");
      spans.push_back({.first_row = int64_t(ids.size()),
                       .rows = rows,
                       .start = part.start,
                       .state_slot = Cache::state_slot(part.sequence),
                       .pages = cache_->pages(part.sequence)});
      ids.insert(ids.end(), part.ids.begin(), part.ids.end());
    }
    const auto rows = int64_t(ids.size());
    for (int64_t row = 0; row < rows; ++row) outputs.push_back(row);
    std::vector<float> logits(size_t(rows * vocabulary()));
    const View ids_view{reinterpret_cast<std::byte*>(ids.data()), DType::i32, {rows}};
    const View logits_view{
        reinterpret_cast<std::byte*>(logits.data()), DType::f32, {rows, vocabulary()}};
    model_->forward({.ids = ids_view,
                     .host_ids = ids,
                     .spans = spans,
                     .outputs = outputs,
                     .logits = logits_view,
                     .hidden = {}},
                    *cache_);
    return logits;
  }

  // Logits of every row of a text that is fed in chunks to a fresh sequence.
  std::vector<float> run(std::span<const int32_t> ids, size_t chunk) {
    const SequenceId sequence = cache_->open().value();
    std::vector<float> logits = run(sequence, ids, chunk);
    cache_->close(sequence);
    return logits;
  }
  std::vector<float> run(SequenceId sequence, std::span<const int32_t> ids, size_t chunk) {
    std::vector<float> logits;
    for (size_t done = 0; done < ids.size(); done += chunk) {
      const Part part{sequence, int64_t(done),
                      ids.subspan(done, std::min(chunk, ids.size() - done))};
      const std::vector<float> rows = step({&part, 1});
      logits.insert(logits.end(), rows.begin(), rows.end());
    }
    return logits;
  }

 private:
  static constexpr int64_t kMaxRows = 256;
  static constexpr int64_t kContext = 256;

  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Cache> cache_;
};

}  // namespace slip
