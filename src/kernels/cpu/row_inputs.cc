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

// Where the codes of each row will be, with `group` inputs per scale.
void RowInputs::place_codes(int64_t group, const Loops& loops) {
  group_ = group;
  const int64_t groups = (width_ + group - 1) / group;
  const auto* codes = reinterpret_cast<const int8_t*>(codes_.data());
  const auto* scales = reinterpret_cast<const float*>(scales_.data());
  const auto* sums = reinterpret_cast<const int32_t*>(sums_.data());
  for (int64_t r = 0; r < row_count_; ++r) {
    RowInput& row = rows_[size_t(r)];
    row.codes = codes + loops.activation_bytes * r * padded(width_);
    row.scales = scales + r * groups;
    row.sums = sums + r * groups;
  }
}

void RowInputs::prepare_part(int64_t r, int64_t first, int64_t values, const Loops& loops) {
  const int64_t groups = (width_ + group_ - 1) / group_;
  const int64_t first_group = r * groups + first / group_;
  loops.quantize_row(rows_[size_t(r)].values + first, values, group_,
                     reinterpret_cast<int8_t*>(codes_.data()) +
                         loops.activation_bytes * (r * padded(width_) + first),
                     reinterpret_cast<float*>(scales_.data()) + first_group,
                     reinterpret_cast<int32_t*>(sums_.data()) + first_group);
}

bool RowInputs::begin_parts(const WeightInfo& info, int64_t values, const Loops& loops) {
  if (!uses_integer_activations(info.format) || values % activation_group(info) != 0) return false;
  place_codes(activation_group(info), loops);
  return true;
}

void RowInputs::prepare(const WeightInfo& info, const Loops& loops, ThreadPool& pool) {
  if (!uses_integer_activations(info.format) || group_ == activation_group(info)) return;
  place_codes(activation_group(info), loops);
  // A few short rows are done before a second thread would have started.
  if (row_count_ * width_ < 8192) {
    for (int64_t r = 0; r < row_count_; ++r) prepare_part(r, 0, width_, loops);
  } else {
    pool.run(row_count_, [&](int64_t r, int) { prepare_part(r, 0, width_, loops); });
  }
}

}  // namespace slip
