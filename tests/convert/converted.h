// Checkpoints made in a test: the small ones of tests/data, quantized.
#pragma once

#include <fstream>

#include "base/files.h"
#include "convert/hybrid.h"
#include "convert/quantize.h"
#include "convert/quantize_config.h"
#include "kernels/cpu/cpu_ops.h"
#include "tests/checkpoint/test_files.h"
#include "tests/golden/tiny_folder.h"

namespace slip {

inline const ConvertProgress kNoProgress = [](uint64_t, uint64_t) { return true; };

// A model whose files may be changed.
inline std::filesystem::path copy_model(const std::filesystem::path& from, const TempFolder& into,
                                        const std::string& name) {
  const std::filesystem::path copy = into.path() / name;
  std::filesystem::create_directories(copy);
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    std::filesystem::copy(entry.path(), copy / entry.path().filename());
    std::filesystem::permissions(copy / entry.path().filename(),
                                 std::filesystem::perms::owner_write,
                                 std::filesystem::perm_options::add);
  }
  return copy;
}

inline QuantizeOptions tiny_options(StoredForm form) {
  return {.choices = form == StoredForm::int4 ? autoround_choices() : fp8_choices(),
          .group = 32,
          .mtp_apart = form == StoredForm::int4};
}

// Quantizes a folder by rounding to nearest.
inline Result<QuantizeResult> quantize_folder(const std::filesystem::path& from,
                                              const std::filesystem::path& out,
                                              const QuantizeOptions& options,
                                              const ConvertProgress& progress = kNoProgress) {
  SLIP_TRY(const Checkpoint source, Checkpoint::open(from));
  SLIP_TRY(const QuantizePlan plan, plan_quantization(source, options));
  ThreadPool pool(2);
  return quantize_checkpoint(
      {.source = source,
       .plan = plan,
       .quantization_config = options.mtp_apart ? autoround_config(plan, {}) : fp8_config(plan),
       .hybrid_note = {},
       .out = out},
      pool, progress);
}

inline Result<HybridResult> hybrid_of(const std::filesystem::path& int4, TensorSource& fp8,
                                      const std::filesystem::path& out, bool full = false,
                                      LinkWay link = LinkWay::automatic) {
  SLIP_TRY(const Checkpoint opened, Checkpoint::open(int4));
  const std::set<TensorClass> classes{TensorClass::shared_experts};
  SLIP_TRY(const HybridPlan plan, plan_hybrid(opened, fp8, classes));
  return make_hybrid({.int4 = opened,
                      .fp8 = fp8,
                      .plan = plan,
                      .classes = classes,
                      .out = out,
                      .full = full,
                      .link = link},
                     kNoProgress);
}

// Every tensor of both is the same.
inline void expect_same_tensors(const std::filesystem::path& a, const std::filesystem::path& b) {
  const Checkpoint first = Checkpoint::open(a).value(), second = Checkpoint::open(b).value();
  EXPECT_EQ(first.tensors().size(), second.tensors().size());
  for (const StoredTensor& tensor : first.tensors()) {
    const StoredTensor* other = second.find(tensor.name);
    ASSERT_TRUE(other) << tensor.name;
    EXPECT_EQ(tensor.type, other->type) << tensor.name;
    EXPECT_EQ(tensor.shape, other->shape) << tensor.name;
    EXPECT_TRUE(
        std::equal(tensor.data.begin(), tensor.data.end(), other->data.begin(), other->data.end()))
        << tensor.name;
  }
}

inline Json json_of(const std::filesystem::path& path) {
  return parse_json(read_text_file(path).value(), path.string()).value();
}

// Changes bytes of a tensor's data in its file.
inline void overwrite(const std::filesystem::path& folder, const std::string& tensor, size_t offset,
                      std::string_view bytes) {
  const Checkpoint checkpoint = Checkpoint::open(folder).value();
  const StoredTensor* found = checkpoint.find(tensor);
  check(found, "no tensor ", tensor);
  std::fstream file(found->path(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(found->data.data() - found->file->bytes().data() + std::ptrdiff_t(offset));
  file.write(bytes.data(), std::streamsize(bytes.size()));
}

}  // namespace slip
