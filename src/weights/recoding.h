// Weights that are made at load: in another number format than the source holds, or with some of
// its rows only.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/threads.h"
#include "weights/weight_source.h"

namespace slip {

// How a weight is to differ from what the source holds.
struct Recoding {
  // int8_row, fp8_block or int4_group (int8_row where no group fits), made from 16 or 32 bits. A
  // matrix that is already quantized stays as it is: quantizing twice would only lose.
  std::optional<WeightFormat> format{};

  // Only these rows, in this order; empty: all. Rows share no fp8 block with their new neighbours,
  // so those of fp8 matrices become int8. Borrowed.
  std::span<const int32_t> rows{};

  bool empty() const { return !format && rows.empty(); }
};

// What a matrix will be that the source holds as `found`.
WeightInfo recoded_info(const WeightInfo& found, const Recoding& recoding);

// Fills a plain weight of recoded_info(). Holds few rows of a 16- or 32-bit original at a time,
// and the whole of a quantized one. Called from several threads at once, or with a pool whose
// threads share the rows of an original that is not quantized.
struct RecodedMatrix {
  const std::string& module;
  const WeightInfo& found;  // as describe() said
  const Recoding& recoding;
};
Status read_recoded(WeightSource& source, const RecodedMatrix& matrix, const Weight& plain,
                    ThreadPool* pool = nullptr);

}  // namespace slip
