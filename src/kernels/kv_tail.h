// Where positions lie in the tail of a coded cache (KvPages), the same for all backends.
//
// The tail is a ring of two pages. Between steps it holds the page that is being filled. Rows that
// may be rejected reach into the page after it at most, so that nothing is lost that the sequence
// may fall back to. During a step the tail also holds the beginning of the page that the span
// starts in, because the rows of that page read it uncoded. A long span may come round to that half
// of the ring: then rotate_and_store() moves the beginning to the other half, which nobody needs
// any more, and attention() reads it there.
#pragma once

#include <cstdint>

#include "kernels/args.h"

namespace slip {

class KvTail {
 public:
  KvTail(const Span& span, int64_t page_len)
      : page_len_(page_len),
        start_(span.start),
        first_page_(page_start(span.start)),
        last_page_(page_start(span.start + span.rows)) {
    check(!span.record || span.rows <= page_len, span.rows,
          " rows that may be rejected, pages have ", page_len);
  }

  // First position of the page that `position` lies in.
  int64_t page_start(int64_t position) const { return position - position % page_len_; }

  // The page that the span starts in, and the one that the row after the span will lie in. Those
  // from the first to before the last are complete.
  int64_t first_page() const { return first_page_; }
  int64_t last_page() const { return last_page_; }

  // Place of a position, before the step and after it.
  int64_t place(int64_t position) const { return position % (2 * page_len_); }

  // Place of a position of [first_page, start) when attention() reads it.
  int64_t beginning_place(int64_t position) const {
    return place(position + (moves_beginning() ? page_len_ : 0));
  }
  bool moves_beginning() const {
    return last_page_ > first_page_ && place(last_page_) == place(first_page_);
  }

  // Rows from this position on are written: all of them while they fit beside the beginning,
  // otherwise those of the page that is being filled.
  int64_t first_written() const {
    return last_page_ - first_page_ <= page_len_ ? start_ : last_page_;
  }

 private:
  int64_t page_len_;
  int64_t start_;
  int64_t first_page_;
  int64_t last_page_;
};

}  // namespace slip
