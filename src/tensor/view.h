// Shape and View: a typed window on bytes that somebody else owns.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <span>

#include "tensor/dtype.h"

namespace slip {

// Up to four dimensions, outermost first, dense row-major.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) {
    check(dims.size() <= kMaxDims, "Shape has at most ", kMaxDims, " dimensions");
    for (const int64_t dim : dims) dims_[rank_++] = dim;
  }

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i]; }

  int64_t count() const {
    int64_t product = 1;
    for (int i = 0; i < rank_; ++i) product *= dims_[i];
    return product;
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    return a.rank_ == b.rank_ && a.dims_ == b.dims_;
  }

  friend std::ostream& operator<<(std::ostream& out, const Shape& shape) {
    out << '[';
    for (int i = 0; i < shape.rank_; ++i) out << (i ? ", " : "") << shape.dims_[i];
    return out << ']';
  }

 private:
  static constexpr int kMaxDims = 4;
  std::array<int64_t, kMaxDims> dims_{};
  int rank_ = 0;
};

// Borrows; cheap to copy; must not outlive the Buffer it points into.
struct View {
  std::byte* data = nullptr;
  DType dtype = DType::f32;
  Shape shape;

  bool empty() const { return data == nullptr; }
  int64_t count() const { return shape.count(); }
  size_t bytes() const { return size_t(count()) * bytes_per_value(dtype); }

  template <class T>
  T* as(DType expected) const {
    check(dtype == expected, "view holds ", name_of(dtype), ", asked for ", name_of(expected));
    return reinterpret_cast<T*>(data);
  }
  float* f32() const { return as<float>(DType::f32); }
  int32_t* i32() const { return as<int32_t>(DType::i32); }

  // The first `rows` rows; used because buffers are made for the largest step.
  View first(int64_t rows) const { return slice(0, rows); }

  // Rows [begin, begin + rows) of the outermost dimension.
  View slice(int64_t begin, int64_t rows) const {
    check(begin >= 0 && rows >= 0 && begin + rows <= shape[0], "slice [", begin, ", ", begin + rows,
          ") of ", shape);
    const int64_t inner = shape[0] == 0 ? 0 : count() / shape[0];
    View part = *this;
    part.data = data + size_t(begin) * size_t(inner) * bytes_per_value(dtype);
    part.shape = with_rows(rows);
    return part;
  }

  // The same values under another shape.
  View reshaped(const Shape& other) const {
    check(other.count() == count(), "cannot view ", shape, " as ", other);
    return {data, dtype, other};
  }

 private:
  Shape with_rows(int64_t rows) const {
    switch (shape.rank()) {
      case 1: return {rows};
      case 2: return {rows, shape[1]};
      case 3: return {rows, shape[1], shape[2]};
      case 4: return {rows, shape[1], shape[2], shape[3]};
      default: unreachable("rank");
    }
  }
};

}  // namespace slip
