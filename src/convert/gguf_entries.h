// What a GGUF file of a Qwen3.5 model holds, and where each tensor of it comes from. The names are
// those of llama.cpp's architectures "qwen35" and "qwen35moe". Against the published files
//   - norms hold 1 + weight, ssm_a holds -exp(A_log);
//   - the experts of a layer are one tensor per matrix;
//   - value heads of the delta net lie so that head h belongs to key head h modulo the key heads;
//     published files have the heads of one key head beside each other;
//   - the MTP layer is one more block behind the others.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "convert/gguf_rows.h"
#include "models/qwen3_5/config.h"
#include "models/qwen3_5/weights.h"

namespace slip {

// Rows in this order; empty: as they are.
using RowOrder = std::vector<int64_t>;

struct GgufEntry {
  std::string name;
  // Matrices [out, in], one below the other; or one vector.
  std::vector<std::string> modules;
  int64_t out = 0, in = 0;
  bool stacked = false;  // a tensor of rank 3, even of one matrix
  bool exact = false;    // as f32, as the other side wants it
  RowOrder rows{};
  ColumnOrder columns{};

  std::string vector;            // the tensor's name, instead of modules
  std::vector<int64_t> shape{};  // of the vector, in the source
  float (*map)(float) = nullptr;

  bool is_vector() const { return !vector.empty(); }
};

std::vector<GgufEntry> gguf_entries(const qwen3_5::Config& config,
                                    const qwen3_5::Prefixes& prefixes, bool with_mtp);

// Everything about the model but its vocabulary. `rope_sections` is what config.json says, if it
// says so.
void add_architecture(const qwen3_5::Config& config, bool with_mtp,
                      const std::vector<int64_t>& rope_sections, GgufMetadata& metadata);

}  // namespace slip
