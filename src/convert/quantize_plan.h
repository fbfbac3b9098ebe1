// What each tensor of a 16-bit checkpoint becomes: chosen by class, refused by shape.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/tensor_class.h"
#include "convert/split_experts.h"

namespace slip {

enum class StoredForm {
  plain,  // as it is, 16 or 32 bits
  int4,   // AutoRound's packing: qweight, qzeros, scales
  fp8,    // e4m3 with a scale per block of 128 x 128: weight, weight_scale_inv
};
const char* name_of(StoredForm form);

// Classes that are not named stay plain.
using FormChoices = std::map<TensorClass, StoredForm>;

// What published INT4 checkpoints do: attention, delta nets, MLPs and experts; shared experts,
// gates, routers, head, embedding and MTP stay 16 bits.
FormChoices autoround_choices();
// What Qwen's FP8 checkpoints do: shared experts and MTP as well.
FormChoices fp8_choices();

struct PlannedTensor {
  SplitTensor source;
  StoredForm form = StoredForm::plain;

  std::string module() const;  // the name without ".weight"
  bool is_matrix() const;      // of a linear layer, whatever becomes of it
};

// A file of the new checkpoint.
struct PlannedFile {
  std::string name;
  std::vector<PlannedTensor> tensors;
};

struct QuantizePlan {
  int group = 128;
  FormChoices choices;
  std::vector<PlannedFile> files;
  std::map<TensorClass, std::map<StoredForm, int64_t>> counts;  // of matrices
  uint64_t source_bytes = 0;
};

struct QuantizeOptions {
  FormChoices choices;
  int group = 128;                // inputs per int4 scale
  bool mtp_apart = false;         // MTP tensors in a file of their own, as AutoRound has them
  uint64_t file_bytes = 1 << 30;  // a file of the new checkpoint is about so large at most
};

// Matrices whose sides are not multiples of 32 (of the group, for int4) stay plain, as AutoRound
// leaves them. A checkpoint that is quantized already is an error.
Result<QuantizePlan> plan_quantization(const Checkpoint& source, const QuantizeOptions& options);

// The tensors that a planned one becomes.
struct NewTensorShape {
  std::string name;
  StoredType type;
  std::vector<int64_t> shape;
};
std::vector<NewTensorShape> new_tensors(const PlannedTensor& tensor, int group);

}  // namespace slip
