// Rows of a weight in GGUF's types. What a checkpoint holds in 4 bits or 16 stays exactly what it
// is; FP8 becomes BF16, the nearest that the other side reads.
#pragma once

#include <cstddef>
#include <vector>

#include "convert/gguf_file.h"
#include "quant/weight.h"

namespace slip {

GgufType gguf_type_of(WeightFormat format);

// Whole heads of a row in another order; without heads as they are.
struct ColumnOrder {
  std::vector<int64_t> heads;  // which head of the row comes next
  int64_t width = 0;           // of a head; whole blocks
};

// Appends row `row` of a plain weight. `type` is the format's own, or f32.
void append_gguf_row(const Weight& weight, int64_t row, GgufType type, const ColumnOrder& order,
                     std::vector<std::byte>& out);

}  // namespace slip
