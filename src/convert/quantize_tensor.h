// Matrices of 16 or 32 bits into the bytes of quantized tensors, several at a time on all threads.
#pragma once

#include <vector>

#include "base/threads.h"
#include "convert/plain_matrix.h"
#include "convert/quantize.h"
#include "quant/weight.h"
#include "tensor/buffer.h"

namespace slip {

// One matrix on its way; the order of `parts` is that of new_tensors().
struct MatrixInWork {
  const PlannedTensor* tensor = nullptr;
  PlainMatrix matrix;
  Buffer storage;  // of `rounded`
  Weight rounded;  // in the plain layout of its new format
  bool has_codes = false;
  std::vector<std::vector<std::byte>> parts;
};

Result<MatrixInWork> begin_matrix(const PlannedTensor& tensor, int group, Int4Codes* codes);

// Rounds what has no codes yet and packs all of them. An error names the tensor.
Status finish_matrices(std::vector<MatrixInWork>& matrices, ThreadPool& pool);

}  // namespace slip
