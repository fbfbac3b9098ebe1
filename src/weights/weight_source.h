// Where weights come from: files (checkpoint_source.h) or a random generator of the same shapes
// (synthetic_source.h). A source knows names and formats; it knows no model.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "quant/weight.h"

namespace slip {

// Some rows of the matrix of `module`.
struct MatrixRows {
  const std::string& module;
  const WeightInfo& whole;  // as describe() said
  int64_t first = 0;
};

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // The format in which the source holds the matrix of `module` (a name without ".weight"), or why
  // there is none of shape [out, in].
  virtual Result<WeightInfo> describe(const std::string& module, int64_t out, int64_t in) = 0;

  // Fills a plain weight made from what describe() said. Called from several threads at once.
  virtual Status read(const std::string& module, const Weight& plain) = 0;

  // Fills a plain weight with as many rows of a 16- or 32-bit matrix as it has, so that a reader of
  // a large one need not hold all of it. Called from several threads at once.
  virtual Status read_rows(const MatrixRows& rows, const Weight& plain) = 0;

  // Where the source holds the matrix: in this order matrices are fastest to read.
  virtual uint64_t place(const std::string&) const { return 0; }

  // The machine has one memory for the GPU and the host: what was read must not stay in the page
  // cache, where it would take room from the weights made of it.
  virtual void spare_page_cache() {}

  // Where the source keeps a 16- or 32-bit matrix in memory, row after row; empty if nowhere.
  virtual std::span<const std::byte> mapped(const std::string&, const WeightInfo&) { return {}; }

  // Fills `values` from the tensor `name` of the given shape, widened to f32.
  virtual Status read_vector(const std::string& name, const Shape& shape,
                             std::span<float> values) = 0;

  // The first tensor that is not there of those that make up the matrix of `module`.
  virtual std::optional<std::string> missing_matrix(const std::string& module) const = 0;
  // Whether read_vector() would find the tensor.
  virtual bool has_vector(const std::string& name) const = 0;

  // A source of random numbers: any others will do for the matrix of `module`, such as those that a
  // backend makes from this seed.
  virtual std::optional<uint64_t> noise_seed(const std::string&) const { return std::nullopt; }

  // After everything was asked for: fails if the source holds tensors nobody wanted.
  virtual Status check_all_used() = 0;
};

}  // namespace slip
