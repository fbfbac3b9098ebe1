#include "kernels/cpu/row_inputs.h"

namespace slip {
namespace {

// The smallest group any weight may have; bounds the number of scales.
constexpr int64_t kSmallestGroup = 32;

int64_t padded(int64_t width) { return (width + kLanes - 1) / kLanes * kLanes; }

// Every row may be padded to whole vectors and have a partial last group.
size_t code_bytes(int64_t rows, int64_t values) { return size_t(2 * (values + rows * kLanes)); }
size_t scale_values(int64_t rows, int64_t values) { return size_t(values / kSmallestGroup + rows); }

}  // namespace

bool uses_integer_activations(WeightFormat format) {
  return format == WeightFormat::int4_group || format == WeightFormat::int8_row;
}

int64_t activation_group(const WeightInfo& info) {
  return info.format == WeightFormat::int4_group ? info.group : kActivationGroup;
}

size_t RowInputs::reserved_bytes(int64_t rows, int64_t values) {
  return size_t(rows) * sizeof(RowInput) + code_bytes(rows, values) +
         scale_values(rows, values) * (sizeof(float) + sizeof(int32_t));
}

void RowInputs::reserve(int64_t rows, int64_t values) {
  if (size_t(rows) > rows_.size()) rows_.resize(size_t(rows));
  const size_t code_count = code_bytes(rows, values);
  const size_t scale_count = scale_values(rows, values);
  if (codes_.size() < code_count) codes_ = Buffer(host_memory(), code_count);
  if (scales_.size() < scale_count * sizeof(float)) {
    scales_ = Buffer(host_memory(), scale_count * sizeof(float));
    sums_ = Buffer(host_memory(), scale_count * sizeof(int32_t));
  }
}

void RowInputs::set(const float* x, int64_t rows, int64_t width, int64_t stride) {
  check(size_t(rows) <= rows_.size() && size_t(2 * rows * padded(width)) <= codes_.size(),
        "RowInputs: ", rows, " rows of ", width, " exceed what was reserved");
  group_ = 0;
  width_ = width;
  row_count_ = rows;
  for (int64_t r = 0; r < rows; ++r) rows_[size_t(r)] = {x + r * stride, nullptr, nullptr, nullptr};
}

void RowInputs::prepare(const WeightInfo& info, const Loops& loops, ThreadPool& pool) {
  if (!uses_integer_activations(info.format) || group_ == activation_group(info)) return;
  group_ = activation_group(info);
  const int64_t groups = (width_ + group_ - 1) / group_;
  auto* codes = reinterpret_cast<int8_t*>(codes_.data());
  auto* scales = reinterpret_cast<float*>(scales_.data());
  auto* sums = reinterpret_cast<int32_t*>(sums_.data());
  const auto quantize = [&](int64_t r) {
    RowInput& row = rows_[size_t(r)];
    int8_t* row_codes = codes + loops.activation_bytes * r * padded(width_);
    loops.quantize_row(row.values, width_, group_, row_codes, scales + r * groups,
                       sums + r * groups);
    row.codes = row_codes;
    row.scales = scales + r * groups;
    row.sums = sums + r * groups;
  };
  // A few short rows are done before a second thread would have started.
  if (row_count_ * width_ < 8192) {
    for (int64_t r = 0; r < row_count_; ++r) quantize(r);
  } else {
    pool.run(row_count_, [&](int64_t r, int) { quantize(r); });
  }
}

}  // namespace slip
