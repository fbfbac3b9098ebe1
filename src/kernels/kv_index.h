// Where a key or value lies in the pages of KvPages.
#pragma once

#include "kernels/args.h"

namespace slip {

// Which vector of [pages, kv_heads, page_len] a position is that lies in `page`; `shape` begins
// with these.
inline int64_t vector_in_page(const Shape& shape, int64_t page, int64_t position, int64_t kv_head) {
  const int64_t kv_heads = shape[1], page_len = shape[2];
  return (page * kv_heads + kv_head) * page_len + position % page_len;
}

// The same for a position of a sequence in plain pages.
inline int64_t plain_vector(const KvPages& kv, const Span& span, int64_t position,
                            int64_t kv_head) {
  const Shape& shape = kv.keys.shape;
  return vector_in_page(shape, kv.page_of(span, position, shape[2]), position, kv_head);
}

}  // namespace slip
