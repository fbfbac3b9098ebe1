#include "weights/recoding.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "quant/fp8_block.h"
#include "quant/int4_group.h"
#include "quant/int8_row.h"
#include "quant/widen_row.h"
#include "tensor/buffer.h"
#include "weights/first_failure.h"

namespace slip {
namespace {

// A row of blocks, so that fp8 scales see all of their values.
constexpr int64_t kRowsAtOnce = kFp8Block;

// Rows [first, first + count) of the source that are to lie at row `place` of the result.
struct Run {
  int64_t first, count, place;
};

// The rows in pieces that are consecutive in the source and short.
std::vector<Run> runs_of(int64_t out, std::span<const int32_t> rows) {
  std::vector<Run> runs;
  const int64_t count = rows.empty() ? out : int64_t(rows.size());
  for (int64_t place = 0; place < count; ++place) {
    const int64_t row = rows.empty() ? place : rows[size_t(place)];
    check(row >= 0 && row < out, "row ", row, " of ", out);
    const bool follows = !runs.empty() && runs.back().first + runs.back().count == row;
    if (follows && runs.back().count < kRowsAtOnce) {
      ++runs.back().count;
    } else {
      runs.push_back({row, 1, place});
    }
  }
  return runs;
}

Status quantize(const Weight& from, const Weight& into, int64_t first_row) {
  switch (into.info.format) {
    case WeightFormat::int8_row: return quantize_int8_rows(from, into, first_row);
    case WeightFormat::fp8_block: return quantize_fp8_blocks(from, into, first_row);
    case WeightFormat::int4_group: return quantize_int4_groups(from, into, first_row);
    case WeightFormat::f32:
    case WeightFormat::bf16:
    case WeightFormat::f16: break;
  }
  unreachable("a WeightFormat that is made at load");
}

// `storage` has room for the rows of a run, as they are found.
Status read_run(WeightSource& source, const RecodedMatrix& matrix, const Run& run,
                const Weight& plain, std::byte* storage) {
  const WeightInfo& found = matrix.found;
  Weight piece = plain_weight({found.format, run.count, found.in, 0}, storage);
  const bool same_format = plain.info.format == found.format;
  if (same_format) piece.values = plain.values.slice(run.place, run.count);
  SLIP_TRY_STATUS(source.read_rows({matrix.module, found, run.first}, piece));
  if (same_format) return {};
  Status status = quantize(piece, plain, run.place);
  if (status.ok()) return {};
  return std::move(status).failure().in(cat(matrix.module, " as ", name_of(plain.info.format)));
}

Status read_floats(WeightSource& source, const RecodedMatrix& matrix, const Weight& plain,
                   ThreadPool* pool) {
  const WeightInfo& found = matrix.found;
  const std::vector<Run> runs = runs_of(found.out, matrix.recoding.rows);
  const size_t room =
      plain_bytes({found.format, std::min(kRowsAtOnce, plain.info.out), found.in, 0});
  const size_t threads = pool ? size_t(pool->threads()) : 1;
  const Buffer storage(host_memory(), threads * room);
  FirstFailure failure;
  const auto read = [&](int64_t run, int thread) {
    if (failure.any()) return;
    failure.keep(
        read_run(source, matrix, runs[size_t(run)], plain, storage.data() + size_t(thread) * room));
  };
  if (pool)
    pool->run(int64_t(runs.size()), read);
  else
    for (size_t run = 0; run < runs.size(); ++run) read(int64_t(run), 0);
  return failure.take();
}

// Where rows have scales of their own, they move as they are.
void copy_row(const Weight& from, int64_t row, const Weight& into, int64_t place) {
  const auto copy = [&](const View& source, const View& target) {
    const View bytes = source.slice(row, 1);
    std::memcpy(target.slice(place, 1).data, bytes.data, bytes.bytes());
  };
  copy(from.values, into.values);
  copy(from.scales, into.scales);
}

Status requantize_row(const Weight& from, int64_t row, const Weight& into, int64_t place) {
  std::vector<float> values;
  for (int64_t i = 0; i < from.info.in; ++i) values.push_back(weight_at(from, row, i));
  int8_t* codes = into.values.slice(place, 1).as<int8_t>(DType::i8);
  SLIP_TRY(into.scales.f32()[place], quantize_int8_row(values, {codes, values.size()}));
  return {};
}

Status read_quantized(WeightSource& source, const RecodedMatrix& matrix, const Weight& plain) {
  const Buffer storage(host_memory(), plain_bytes(matrix.found));
  const Weight whole = plain_weight(matrix.found, storage.data());
  SLIP_TRY_STATUS(source.read(matrix.module, whole));
  const std::span<const int32_t> rows = matrix.recoding.rows;
  for (size_t place = 0; place < rows.size(); ++place) {
    if (plain.info.format == matrix.found.format) {
      copy_row(whole, rows[place], plain, int64_t(place));
    } else {
      SLIP_TRY_STATUS(requantize_row(whole, rows[place], plain, int64_t(place)));
    }
  }
  return {};
}

}  // namespace

WeightInfo recoded_info(const WeightInfo& found, const Recoding& recoding) {
  WeightInfo info = found;
  if (recoding.format && is_plain_float(found.format)) {
    check(!is_plain_float(*recoding.format), name_of(*recoding.format), " is not made at load");
    info.format = *recoding.format;
    if (info.format == WeightFormat::int4_group && int4_group_for(found.in) == 0)
      info.format = WeightFormat::int8_row;
  }
  if (!recoding.rows.empty()) {
    info.out = int64_t(recoding.rows.size());
    if (info.format == WeightFormat::fp8_block) info.format = WeightFormat::int8_row;
  }
  if (info.format != found.format) {
    info.group = 0;
    if (info.format == WeightFormat::fp8_block) info.group = kFp8Block;
    if (info.format == WeightFormat::int4_group) info.group = int4_group_for(found.in);
  }
  return info;
}

Status read_recoded(WeightSource& source, const RecodedMatrix& matrix, const Weight& plain,
                    ThreadPool* pool) {
  if (is_plain_float(matrix.found.format) && !matrix.recoding.empty())
    return read_floats(source, matrix, plain, pool);
  if (!matrix.recoding.rows.empty()) return read_quantized(source, matrix, plain);
  return source.read(matrix.module, plain);
}

}  // namespace slip
