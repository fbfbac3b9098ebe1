// WeightTable: what a model needs, as a list. Loading checks every entry in both directions
// (missing, extra, shape, type), lets the backend repack it, and places all of them in one buffer.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/threads.h"
#include "kernels/ops.h"
#include "tensor/buffer.h"
#include "weights/recoding.h"
#include "weights/row_table.h"
#include "weights/weight_source.h"

namespace slip {

// Bytes placed so far, bytes in all.
using LoadProgress = std::function<void(uint64_t done, uint64_t total)>;

// Sizes by class and format, for `inspect` and for bytes per step.
struct PlacedWeight {
  std::string name;
  WeightInfo info;
  size_t bytes = 0;
  bool drafts = false;  // no step reads it, only drafts do
};

// A matrix for linear layers, and what is made of it at load.
struct MadeLinear {
  std::string name;    // in placed()
  std::string module;  // of the source
  int64_t out, in;     // as the source holds it
  Recoding recoding;
};

class WeightTable {
 public:
  // `into` must outlive load().
  void add_linear(MadeLinear linear, Weight* into);

  // A small f32 tensor; `map` is applied to every value (norms are stored minus one, say).
  void add_vector(std::string name, const Shape& shape, View* into, float (*map)(float) = nullptr);

  // The transposed of a tensor that is stored as `stored` = [rows, ..., columns].
  void add_transposed(std::string name, const Shape& stored, View* into);

  // A table [rows, columns] of which rows are looked up; it stays where the source has it, and
  // takes no bytes of the buffer.
  void add_rows(std::string module, int64_t rows, int64_t columns, RowTable* into);

  // Tensors of entries that the source does not have, one for each entry.
  std::vector<std::string> missing(const WeightSource& source) const;

  // Looks up the format of every entry, and checks that the source has no others. Returns the bytes
  // that all of them will take, or what is wrong.
  Result<uint64_t> plan(WeightSource& source, const Ops& ops);

  // Plans first, so that a bad checkpoint fails before gigabytes were read.
  // The buffer owns what the `into` pointers then refer to.
  Result<Buffer> load(WeightSource& source, Ops& ops, ThreadPool& pool,
                      const LoadProgress& progress);

  // What plan() and load() found, in table order.
  const std::vector<PlacedWeight>& placed() const { return placed_; }

 private:
  struct Linear {
    MadeLinear made;
    Weight* into;
    WeightInfo found{};  // as the source holds it
    WeightInfo info{};   // as it will be
    size_t offset = 0, bytes = 0;
  };
  struct Vector {
    std::string name;
    Shape shape;
    View* into;
    float (*map)(float) = nullptr;
    bool transposed = false;
    size_t offset = 0, bytes = 0;
  };

  struct Rows {
    std::string module;
    int64_t rows, columns;
    RowTable* into;
  };

  // Whether all threads make it together, rather than one of them, beside others.
  static bool is_shared_by_threads(const Linear& linear);
  std::vector<const Linear*> reading_order(const WeightSource& source, int threads) const;
  // `pool`: null for what one thread makes.
  Status load_linear(const Linear& linear, WeightSource& source, Ops& ops, const Buffer& storage,
                     Buffer& scratch, ThreadPool* pool) const;
  Status load_vector(const Vector& vector, WeightSource& source, Memory& memory,
                     const Buffer& storage) const;

  std::vector<Linear> linears_;
  std::vector<Vector> vectors_;
  std::vector<Rows> tables_;
  std::vector<PlacedWeight> placed_;
  size_t total_bytes_ = 0;
};

}  // namespace slip
