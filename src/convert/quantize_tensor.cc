#include "convert/quantize_tensor.h"

#include <atomic>
#include <cstring>
#include <mutex>

#include "quant/fp8_block.h"
#include "quant/gptq.h"
#include "quant/int4_group.h"
#include "quant/number_formats.h"

namespace slip {
namespace {

// Whole fp8 blocks, and enough work to be worth a thread's attention.
constexpr int64_t kPackedRowsPerItem = 128;

struct RowsInWork {
  MatrixInWork* matrix;
  int64_t first, rows;
};

Status round_rows(const RowsInWork& work) {
  const Weight& from = work.matrix->matrix.weight();
  Weight rows = from;
  rows.info.out = work.rows;
  rows.values = from.values.slice(work.first, work.rows);
  if (work.matrix->tensor->form == StoredForm::int4)
    return quantize_int4_groups(rows, work.matrix->rounded, work.first);
  return quantize_fp8_blocks(rows, work.matrix->rounded, work.first);
}

std::vector<std::byte> scales_as_bf16(const View& scales) {
  std::vector<std::byte> bytes(size_t(scales.count()) * sizeof(uint16_t));
  for (int64_t i = 0; i < scales.count(); ++i) {
    const uint16_t bits = float_to_bf16(scales.f32()[i]);
    std::memcpy(bytes.data() + size_t(i) * sizeof(bits), &bits, sizeof(bits));
  }
  return bytes;
}

void pack(MatrixInWork& work) {
  if (work.tensor->form == StoredForm::int4) {
    PackedGptq packed = pack_gptq(work.rounded);
    work.parts.push_back(std::move(packed.qweight));
    work.parts.push_back(std::move(packed.qzeros));
    work.parts.push_back(std::move(packed.scales));
  } else {
    const View& codes = work.rounded.values;
    work.parts.emplace_back(codes.data, codes.data + codes.bytes());
    work.parts.push_back(scales_as_bf16(work.rounded.scales));
  }
  work.storage = Buffer();
}

}  // namespace

Result<MatrixInWork> begin_matrix(const PlannedTensor& tensor, int group, Int4Codes* codes) {
  check(tensor.form != StoredForm::plain, "begin_matrix of a plain tensor");
  const SplitTensor& source = tensor.source;
  SLIP_TRY(PlainMatrix matrix, PlainMatrix::of(*source.stored, source.first_row, source.shape[0]));
  MatrixInWork work;
  work.tensor = &tensor;
  work.matrix = std::move(matrix);
  WeightInfo info{WeightFormat::int4_group, source.shape[0], source.shape[1], group};
  if (tensor.form == StoredForm::fp8) {
    info.format = WeightFormat::fp8_block;
    info.group = kFp8Block;
  }
  work.storage = Buffer(host_memory(), plain_bytes(info));
  work.rounded = plain_weight(info, work.storage.data());
  if (codes && tensor.form == StoredForm::int4) {
    SLIP_TRY(work.has_codes, codes->fill(tensor.module(), work.rounded));
  }
  return work;
}

Status finish_matrices(std::vector<MatrixInWork>& matrices, ThreadPool& pool) {
  std::vector<RowsInWork> items;
  for (MatrixInWork& matrix : matrices) {
    const int64_t rows = matrix.has_codes ? 0 : matrix.rounded.info.out;
    for (int64_t first = 0; first < rows; first += kPackedRowsPerItem)
      items.push_back({&matrix, first, std::min(kPackedRowsPerItem, rows - first)});
  }
  std::mutex mutex;  // guards `failure`
  std::optional<Error> failure;
  pool.run(int64_t(items.size()), [&](int64_t item, int) {
    const RowsInWork& work = items[size_t(item)];
    Status rounded = round_rows(work);
    if (rounded.ok()) return;
    const StoredTensor& stored = *work.matrix->tensor->source.stored;
    const std::lock_guard lock(mutex);
    failure = std::move(rounded).failure().in(
        cat(stored.path().string(), ": tensor ", work.matrix->tensor->source.name));
  });
  if (failure) return *failure;
  pool.run(int64_t(matrices.size()), [&](int64_t item, int) { pack(matrices[size_t(item)]); });
  return {};
}

}  // namespace slip
