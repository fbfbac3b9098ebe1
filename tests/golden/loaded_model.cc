#include "tests/golden/loaded_model.h"

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_ops.h"
#ifdef SLIP_CUDA
#include "kernels/cuda_ops.h"
#endif
#include "kernels/ref/ref_ops.h"

namespace slip {
namespace {

template <Isa isa>
std::unique_ptr<Ops> make_cpu(ThreadPool& pool) {
  return make_cpu_ops(pool, isa);
}

Backend cpu_backend(Isa isa) {
  switch (isa) {
    case Isa::portable: return {"cpu_portable", make_cpu<Isa::portable>};
    case Isa::avx2: return {"cpu_avx2", make_cpu<Isa::avx2>};
    case Isa::avx512: return {"cpu_avx512", make_cpu<Isa::avx512>};
    case Isa::amx: return {"cpu_amx", make_cpu<Isa::amx>};
    case Isa::neon: return {"cpu_neon", make_cpu<Isa::neon>};
    case Isa::i8mm: return {"cpu_i8mm", make_cpu<Isa::i8mm>};
  }
  unreachable("Isa");
}

}  // namespace

Backend ref_backend() {
  return {"ref", [](ThreadPool&) { return make_ref_ops(); }};
}

std::vector<Backend> cpu_backends() {
  std::vector<Backend> backends;
  for (const Isa isa : available_isas()) backends.push_back(cpu_backend(isa));
  return backends;
}

std::vector<Backend> fast_backends() {
  std::vector<Backend> backends = cpu_backends();
#ifdef SLIP_CUDA
  if (make_cuda_ops(0).ok())
    backends.push_back({"cuda", [](ThreadPool&) { return make_cuda_ops(0).value(); }, 16});
#endif
  return backends;
}

std::vector<Backend> all_backends() {
  std::vector<Backend> backends = fast_backends();
  backends.insert(backends.begin(), ref_backend());
  return backends;
}

int32_t argmax(std::span<const float> logits) {
  return int32_t(std::ranges::max_element(logits) - logits.begin());
}

double log_sum_exp(std::span<const float> logits) {
  const double peak = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double(logit) - peak);
  return peak + std::log(sum);
}

LoadedModel::LoadedModel(const std::filesystem::path& folder, const Backend& backend,
                         const LoadedOptions& options)
    : pool_(options.threads), ops_(backend.make(pool_)) {
  const Result<ModelSource> source = ModelSource::open(folder, options.drafter);
  check(source.ok(), source.ok() ? "" : source.failure().message);
  EngineOptions engine;
  engine.memory.context = options.context;
  engine.memory.kv = options.kv;
  engine.memory.sequences = options.sequences;
  engine.memory.checkpoints = options.checkpoints;
  engine.memory.pages = options.pages;
  engine.with_drafter = options.with_drafter;
  engine.max_drafts = options.max_drafts;
  engine.weights = options.weights;
  engine.max_rows = options.max_rows;
  engine.logit_rows = options.max_rows;
  auto loaded = Engine::load(source.value(), engine, *ops_, pool_, {});
  check(loaded.ok(), loaded.ok() ? "" : loaded.failure().message);
  engine_ = std::move(loaded).value();
}

LogitRows LoadedModel::logits(std::span<const int32_t> ids) {
  Session session(*engine_);
  LogitRows rows{engine_->model().info().vocabulary, {}};
  const Status fed =
      session.feed_each(ids, [&](int64_t, std::span<float> logits, std::span<const float>) {
        rows.values.insert(rows.values.end(), logits.begin(), logits.end());
      });
  check(fed.ok(), fed.ok() ? "" : fed.failure().message);
  return rows;
}

std::vector<int32_t> LoadedModel::greedy(std::span<const int32_t> ids, int count) {
  Session session(*engine_);
  check(session.feed(ids).ok(), "the prompt does not fit");
  std::vector<int32_t> chosen{argmax(session.logits())};
  while (int(chosen.size()) < count) {
    check(session.feed({&chosen.back(), 1}).ok(), "the continuation does not fit");
    chosen.push_back(argmax(session.logits()));
  }
  return chosen;
}

double LoadedModel::nll(std::span<const int32_t> ids) {
  Session session(*engine_);
  double sum = 0;
  const Status fed = session.feed_each(
      ids, [&](int64_t position, std::span<float> logits, std::span<const float>) {
        if (size_t(position) + 1 == ids.size()) return;
        sum += log_sum_exp(logits) - double(logits[size_t(ids[size_t(position) + 1])]);
      });
  check(fed.ok(), fed.ok() ? "" : fed.failure().message);
  return sum / double(ids.size() - 1);
}

void LoadedModel::draft_row(const DraftRow& row, const Session& session) {
  const int64_t output = 0;
  const Span span{.first_row = 0,
                  .rows = 1,
                  .start = row.position,
                  .state_slot = Cache::state_slot(session.sequence()),
                  .pages = engine_->cache().pages(session.sequence())};
  const Tensor id(ops_->memory(), DType::i32, {1});
  ops_->memory().upload(id.view.data, &row.next_id, sizeof(row.next_id));
  const DraftStep step{.ids = id.view,
                       .hidden = row.hidden,
                       .spans = {&span, 1},
                       .outputs = {&output, 1},
                       .logits = row.logits,
                       .next_hidden = row.next_hidden};
  engine_->model().drafter()->draft({&step, 1}, engine_->cache());
}

LoadedModel::Drafts LoadedModel::drafts(std::span<const int32_t> ids) {
  Session session(*engine_);
  const ModelInfo& info = engine_->model().info();
  check(info.drafter.has_value(), "drafts() needs with_drafter");
  const auto slots = int64_t(ids.size()) - 2;
  Memory& memory = ops_->memory();
  const Tensor hidden(memory, DType::f32, {int64_t(ids.size()), info.hidden});
  const Status fed =
      session.feed_each(ids, [&](int64_t position, std::span<float>, std::span<const float> row) {
        memory.upload(hidden.view.slice(position, 1).data, row.data(), row.size_bytes());
      });
  check(fed.ok(), fed.ok() ? "" : fed.failure().message);

  const Tensor logits(memory, DType::f32, {1, info.vocabulary});
  const Tensor joined(memory, DType::f32, {1, info.hidden});
  const auto append = [&](LogitRows& rows) {
    rows.values.resize(rows.values.size() + size_t(info.vocabulary));
    memory.download(rows.values.data() + rows.values.size() - size_t(info.vocabulary),
                    logits.view.data, logits.view.bytes());
  };
  Drafts drafts{{info.vocabulary, {}}, {info.vocabulary, {}}};
  // Step 2 of slot p writes its key where step 1 of slot p + 1 then writes its own.
  for (int64_t p = 0; p < slots; ++p) {
    const View state = hidden.view.slice(p, 1);
    draft_row({ids[size_t(p) + 1], p, state, logits.view, joined.view}, session);
    append(drafts.step1);
    draft_row({ids[size_t(p) + 2], p + 1, joined.view, logits.view, View{}}, session);
    append(drafts.step2);
  }
  return drafts;
}

}  // namespace slip
