// A table of which single rows are looked up and nothing is multiplied with. It stays where it is:
// gigabytes of a mapped file cost the pages that are touched.
#pragma once

#include <string>

#include "tensor/buffer.h"
#include "weights/weight_source.h"

namespace slip {

struct RowTable {
  Weight
      weight;  // plain, in host memory: the source's own bytes, which must outlive it, or `owned`
  Buffer owned;
};

// Whether rows can be looked up in such a matrix, or why not.
Status check_row_table(const std::string& module, const WeightInfo& info);

// A matrix [rows, columns] of 16 or 32 bits. It is copied where a file holds it at an odd address;
// random sources leave it zero.
Result<RowTable> open_row_table(WeightSource& source, const std::string& module, int64_t rows,
                                int64_t columns);

}  // namespace slip
