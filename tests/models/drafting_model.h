// A model with formats chosen at load, driven through Model::forward() and its Drafter.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "models/drafter.h"
#include "models/model_source.h"
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
                                     CacheSize{.sequences = 1, .pages = kContext / kPageLen});
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
    std::vector<float> hidden;
    const SequenceId sequence = cache_->open().value();
    for_each_chunk(int64_t(ids.size()), [&](int64_t first, int64_t count) {
      const Span span = cache_->extend(sequence, count, Cache::Rows::certain).value();
      model_->forward({.ids = ids_view(ids, first, count),
                       .host_ids = ids.subspan(size_t(first), size_t(count)),
                       .spans = {&span, 1},
                       .outputs = all(count),
                       .logits = append(rows.logits.values, count, info.vocabulary),
                       .hidden = append(hidden, count, info.hidden)},
                      *cache_);
      cache_->commit(sequence, count);
    });
    if (drafter)
      for_each_chunk(int64_t(ids.size()) - 1, [&](int64_t first, int64_t count) {
        const Span span{.rows = count,
                        .start = first,
                        .state_slot = Cache::state_slot(sequence),
                        .pages = cache_->pages(sequence)};
        const DraftStep step{
            .ids = ids_view(ids, first + 1, count),
            .hidden = view(&hidden[size_t(first * info.hidden)], count, info.hidden),
            .spans = {&span, 1},
            .outputs = all(count),
            .logits = append(rows.drafts.values, count, rows.drafts.vocabulary),
            .next_hidden = {}};
        drafter->draft({&step, 1}, *cache_);
      });
    cache_->close(sequence);
    return rows;
  }

 private:
  static constexpr int64_t kMaxRows = 256, kContext = 2048;

  template <class Body>
  static void for_each_chunk(int64_t rows, const Body& body) {
    for (int64_t done = 0; done < rows; done += kMaxRows)
      body(done, std::min(kMaxRows, rows - done));
  }
  std::span<const int64_t> all(int64_t rows) {
    outputs_.resize(size_t(rows));
    for (int64_t row = 0; row < rows; ++row) outputs_[size_t(row)] = row;
    return outputs_;
  }
  static View view(float* data, int64_t rows, int64_t columns) {
    return {reinterpret_cast<std::byte*>(data), DType::f32, {rows, columns}};
  }
  static View append(std::vector<float>& values, int64_t rows, int64_t columns) {
    values.resize(values.size() + size_t(rows * columns));
    return view(values.data() + values.size() - size_t(rows * columns), rows, columns);
  }
  static View ids_view(std::span<const int32_t> ids, int64_t first, int64_t rows) {
    auto* data = const_cast<int32_t*>(ids.data() + first);  // a View does not know const
    return {reinterpret_cast<std::byte*>(data), DType::i32, {rows}};
  }

  ThreadPool pool_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Cache> cache_;
  std::vector<int64_t> outputs_;
};

}  // namespace slip
