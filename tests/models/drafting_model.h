// A model with formats chosen at load, driven through Model::forward() and its Drafter.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "models/drafter.h"
#include "models/model_source.h"
#include "tensor/buffer.h"
#include "tests/golden/loaded_model.h"

namespace slip {

class DraftingModel {
 public:
  DraftingModel(const std::filesystem::path& folder, const Backend& backend,
                const WeightChoices& choices = {})
      : pool_(2), ops_(backend.make(pool_)) {
    const Result<ModelSource> source = ModelSource::open(folder);
    check(source.ok(), source.ok() ? "" : source.failure().message);
    const ModelOptions options{
        .max_rows = kMaxRows, .context = kContext, .with_drafter = true, .weights = choices};
    auto loaded = source.value().load(options, *ops_, pool_, {});
    check(loaded.ok(), loaded.ok() ? "" : loaded.failure().message);
    model_ = std::move(loaded).value();
    cache_ = std::make_unique<Cache>(model_->cache_specs(), CacheFormat{},
                                     CacheSize{.sequences = 1, .pages = kContext / kPageLen},
                                     ops_->memory());
  }

  Model& model() { return *model_; }

  // Logits of every token of a text, and of the first draft of slots 0 .. ids - 2.
  struct Rows {
    LogitRows logits;
    LogitRows drafts;  // as many columns as the model drafts tokens
  };
  Rows run(std::span<const int32_t> ids) {
    const ModelInfo& info = model_->info();
    Drafter* const drafter = model_->drafter();
    const auto drafted = drafter ? int64_t(drafter->tokens().size()) : 0;
    Rows rows{{info.vocabulary, {}}, {drafted > 0 ? drafted : info.vocabulary, {}}};
    const auto length = int64_t(ids.size());
    Memory& memory = ops_->memory();
    const Tensor tokens(memory, DType::i32, {length});
    const Tensor hidden(memory, DType::f32, {length, info.hidden});
    memory.upload(tokens.view.data, ids.data(), ids.size_bytes());
    const SequenceId sequence = cache_->open().value();
    for_each_chunk(length, [&](int64_t first, int64_t count) {
      const Span span = cache_->extend(sequence, count, Cache::Rows::certain).value();
      append(rows.logits, count, [&](const View& logits) {
        model_->forward({.ids = tokens.view.slice(first, count),
                         .host_ids = ids.subspan(size_t(first), size_t(count)),
                         .spans = {&span, 1},
                         .outputs = all(count),
                         .logits = logits,
                         .hidden = hidden.view.slice(first, count)},
                        *cache_);
      });
      cache_->commit(sequence, count);
    });
    if (drafter)
      for_each_chunk(length - 1, [&](int64_t first, int64_t count) {
        const Span span{.rows = count,
                        .start = first,
                        .state_slot = Cache::state_slot(sequence),
                        .pages = cache_->pages(sequence)};
        append(rows.drafts, count, [&](const View& logits) {
          const DraftStep step{.ids = tokens.view.slice(first + 1, count),
                               .hidden = hidden.view.slice(first, count),
                               .spans = {&span, 1},
                               .outputs = all(count),
                               .logits = logits,
                               .next_hidden = {}};
          drafter->draft({&step, 1}, *cache_);
        });
      });
    cache_->close(sequence);
    return rows;
  }

 private:
  static constexpr int64_t kMaxRows = 256, kContext = 2048;

  // In steps in which a row's bits do not depend on the rows beside it.
  template <class Body>
  void for_each_chunk(int64_t rows, const Body& body) const {
    const int64_t most = std::min(kMaxRows, ops_->invariant_rows());
    for (int64_t done = 0; done < rows; done += most) body(done, std::min(most, rows - done));
  }
  std::span<const int64_t> all(int64_t rows) {
    outputs_.resize(size_t(rows));
    for (int64_t row = 0; row < rows; ++row) outputs_[size_t(row)] = row;
    return outputs_;
  }
  // Calls fill(logits), whose rows lie where the backend computes, and adds them to `rows`.
  template <class Fill>
  void append(LogitRows& rows, int64_t count, const Fill& fill) {
    const Tensor logits(ops_->memory(), DType::f32, {count, rows.vocabulary});
    fill(logits.view);
    const size_t before = rows.values.size();
    rows.values.resize(before + size_t(logits.view.count()));
    ops_->memory().download(&rows.values[before], logits.view.data, logits.view.bytes());
  }

  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Cache> cache_;
  std::vector<int64_t> outputs_;
};

}  // namespace slip
