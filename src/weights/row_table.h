// A table of which single rows are looked up and nothing is multiplied with. It stays where it is:
// gigabytes of a mapped file cost the pages that are touched.
#pragma once

#include <span>
#include <string>

#include "tensor/buffer.h"
#include "weights/weight_source.h"

namespace slip {

struct RowTable {
  // Plain, in host memory: the source's own bytes, which must outlive it, or `owned`.
  Weight weight;
  Buffer owned;
  Buffer gathered;  // rows on their way to another memory, as many as fit

  // Rows `ids` as they lie in the table, one after the other. Allocates nothing.
  void upload(std::span<const int32_t> ids, Memory& memory, std::byte* to) const;
};

// Whether rows can be looked up in such a matrix, or why not.
Status check_row_table(const std::string& module, const WeightInfo& info);

// A matrix [rows, columns] of 16 or 32 bits. It is copied where a file holds it at an odd address;
// random sources leave it zero.
Result<RowTable> open_row_table(WeightSource& source, const std::string& module, int64_t rows,
                                int64_t columns);

}  // namespace slip
