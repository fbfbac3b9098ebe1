// A matrix of 16- or 32-bit numbers in a file, as quantizers read it.
#pragma once

#include <optional>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "quant/weight.h"

namespace slip {

// f32, bf16 or f16; nothing for a type that is not plain.
std::optional<DType> plain_dtype(StoredType type);

class PlainMatrix {
 public:
  // Rows [first, first + rows) of `columns` values each, counted over the whole tensor, so that one
  // expert of a fused tensor [experts, rows, columns] is a matrix too. Borrows the file's bytes
  // where they are aligned for their type. Other types are an error that names the tensor.
  static Result<PlainMatrix> of(const StoredTensor& tensor, int64_t first, int64_t rows);
  static Result<PlainMatrix> of(const StoredTensor& tensor) {
    return of(tensor, 0, tensor.shape[0]);
  }

  const Weight& weight() const { return weight_; }
  std::span<const std::byte> bytes() const { return bytes_; }  // of the file

 private:
  Weight weight_;
  std::span<const std::byte> bytes_;
  std::vector<float> aligned_;  // room for a copy
};

}  // namespace slip
