#include "weights/weight_table.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <optional>

#include "weights/first_failure.h"

namespace slip {
namespace {

constexpr size_t kAlignment = 64;

// Threads keep room for repacking from one matrix to the next, unless it is a head's or a table's:
// gigabytes that the few largest need would then stay until the last small one is placed.
constexpr size_t kKeptScratch = size_t{64} << 20;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void WeightTable::add_linear(MadeLinear linear, Weight* into) {
  linears_.push_back({.made = std::move(linear), .into = into});
}

void WeightTable::add_vector(std::string name, const Shape& shape, View* into,
                             float (*map)(float)) {
  vectors_.push_back({.name = std::move(name), .shape = shape, .into = into, .map = map});
}

void WeightTable::add_transposed(std::string name, const Shape& stored, View* into) {
  vectors_.push_back({.name = std::move(name), .shape = stored, .into = into, .transposed = true});
}

void WeightTable::add_rows(std::string module, int64_t rows, int64_t columns, RowTable* into) {
  tables_.push_back({std::move(module), rows, columns, into});
}

std::vector<std::string> WeightTable::missing(const WeightSource& source) const {
  std::vector<std::string> names;
  for (const Linear& linear : linears_)
    if (std::optional<std::string> name = source.missing_matrix(linear.made.module))
      names.push_back(std::move(*name));
  for (const Vector& vector : vectors_)
    if (!source.has_vector(vector.name)) names.push_back(vector.name);
  for (const Rows& table : tables_)
    if (std::optional<std::string> name = source.missing_matrix(table.module))
      names.push_back(std::move(*name));
  return names;
}

Result<uint64_t> WeightTable::plan(WeightSource& source, const Ops& ops) {
  total_bytes_ = 0;
  placed_.clear();
  const auto place = [&](size_t bytes) {
    const size_t offset = total_bytes_;
    total_bytes_ += aligned(bytes);
    return offset;
  };
  for (Linear& linear : linears_) {
    const MadeLinear& made = linear.made;
    SLIP_TRY(linear.found, source.describe(made.module, made.out, made.in));
    linear.info = recoded_info(linear.found, made.recoding);
    linear.bytes = ops.packed_bytes(linear.info);
    linear.offset = place(linear.bytes);
    placed_.push_back({.name = made.name, .info = linear.info, .bytes = linear.bytes});
  }
  for (Vector& vector : vectors_) {
    vector.bytes = size_t(vector.shape.count()) * sizeof(float);
    vector.offset = place(vector.bytes);
    placed_.push_back({.name = vector.name,
                       .info = {WeightFormat::f32, 1, vector.shape.count(), 0},
                       .bytes = vector.bytes});
    // Small; that they can be read is part of the plan.
    std::vector<float> values(size_t(vector.shape.count()));
    SLIP_TRY_STATUS(source.read_vector(vector.name, vector.shape, values));
  }
  for (const Rows& table : tables_) {
    SLIP_TRY(const WeightInfo info, source.describe(table.module, table.rows, table.columns));
    SLIP_TRY_STATUS(check_row_table(table.module, info));
    placed_.push_back({.name = table.module, .info = info});
  }
  SLIP_TRY_STATUS(source.check_all_used());
  return uint64_t(total_bytes_);
}

Status WeightTable::load_vector(const Vector& vector, WeightSource& source, Memory& memory,
                                const Buffer& storage) const {
  std::vector<float> values(size_t(vector.shape.count()));
  SLIP_TRY_STATUS(source.read_vector(vector.name, vector.shape, values));
  if (vector.map)
    for (float& value : values) value = vector.map(value);
  Shape shape = vector.shape;
  if (vector.transposed) {
    const auto rows = size_t(shape[0]), columns = values.size() / rows;
    std::vector<float> turned(values.size());
    for (size_t row = 0; row < rows; ++row)
      for (size_t column = 0; column < columns; ++column)
        turned[column * rows + row] = values[row * columns + column];
    values = std::move(turned);
    shape = {int64_t(columns), int64_t(rows)};
  }
  *vector.into = storage.view(DType::f32, shape, vector.offset);
  memory.upload(vector.into->data, values.data(), values.size() * sizeof(float));
  return {};
}

Status WeightTable::load_linear(const Linear& linear, WeightSource& source, Ops& ops,
                                const Buffer& storage, Buffer& scratch, ThreadPool* pool) const {
  const MadeLinear& made = linear.made;
  const std::span<std::byte> place = storage.bytes().subspan(linear.offset, linear.bytes);
  if (const std::optional<uint64_t> seed = source.noise_seed(made.module);
      seed && ops.make_noise(linear.info, *seed, place, *linear.into))
    return {};
  if (scratch.size() < plain_bytes(linear.info))
    scratch = Buffer(host_memory(), plain_bytes(linear.info));
  const Weight plain = plain_weight(linear.info, scratch.data());
  SLIP_TRY_STATUS(read_recoded(source, {made.module, linear.found, made.recoding}, plain, pool));
  *linear.into = ops.pack(plain, place);
  if (scratch.size() > kKeptScratch) scratch = Buffer();
  return {};
}

bool WeightTable::is_shared_by_threads(const Linear& linear) {
  return linear.bytes > kKeptScratch && !linear.made.recoding.empty();
}

// As they lie on the disk, but the few large ones first, each at the beginning of another thread's
// share: nobody waits at the end for a head that was begun last.
std::vector<const WeightTable::Linear*> WeightTable::reading_order(const WeightSource& source,
                                                                   int threads) const {
  std::vector<std::pair<uint64_t, const Linear*>> small;
  std::vector<const Linear*> large;
  for (const Linear& linear : linears_) {
    if (is_shared_by_threads(linear)) continue;
    if (linear.bytes > kKeptScratch)
      large.push_back(&linear);
    else
      small.emplace_back(source.place(linear.made.module), &linear);
  }
  std::ranges::stable_sort(large, std::greater(),
                           [](const Linear* linear) { return linear->bytes; });
  std::ranges::stable_sort(small, {}, [](const auto& placed) { return placed.first; });

  std::vector<const Linear*> order(large.size() + small.size(), nullptr);
  for (size_t i = 0; i < large.size(); ++i) {
    auto at = size_t(ThreadPool::first_item(int64_t(order.size()), int(i) % threads, threads));
    while (order[at]) at = (at + 1) % order.size();
    order[at] = large[i];
  }
  auto next = small.begin();
  for (const Linear*& linear : order)
    if (!linear) linear = (next++)->second;
  return order;
}

Result<Buffer> WeightTable::load(WeightSource& source, Ops& ops, ThreadPool& pool,
                                 const LoadProgress& progress) {
  SLIP_TRY([[maybe_unused]] const uint64_t planned, plan(source, ops));
  Buffer storage(ops.memory(), total_bytes_, Pages::huge);
  if (ops.memory().is_taken_from_host()) source.spare_page_cache();

  for (const Vector& vector : vectors_)
    SLIP_TRY_STATUS(load_vector(vector, source, ops.memory(), storage));
  for (const Rows& table : tables_) {
    SLIP_TRY(*table.into, open_row_table(source, table.module, table.rows, table.columns));
  }

  std::mutex mutex;  // guards `done` and the progress callback
  uint64_t done = total_bytes_;
  for (const Linear& linear : linears_) done -= aligned(linear.bytes);
  const auto count = [&](const Linear& linear) {
    const std::lock_guard lock(mutex);
    done += aligned(linear.bytes);
    if (progress) progress(done, total_bytes_);
  };
  // What one thread would take longer to round than all others need for the rest.
  for (const Linear& linear : linears_) {
    if (!is_shared_by_threads(linear)) continue;
    Buffer scratch;
    SLIP_TRY_STATUS(load_linear(linear, source, ops, storage, scratch, &pool));
    count(linear);
  }
  const std::vector<const Linear*> order = reading_order(source, pool.threads());
  std::vector<Buffer> scratch(size_t(pool.threads()));
  FirstFailure failure;
  pool.run(int64_t(order.size()), [&](int64_t item, int thread) {
    if (failure.any()) return;
    const Linear& linear = *order[size_t(item)];
    if (failure.keep(load_linear(linear, source, ops, storage, scratch[size_t(thread)], nullptr)))
      count(linear);
  });
  SLIP_TRY_STATUS(failure.take());
  return storage;
}

}  // namespace slip
