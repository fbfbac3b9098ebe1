// Weights from safetensors files, in whatever format the files hold them.
//
// For a module M the tensors decide, never the config:
//   M.qweight (+ scales, qzeros)          INT4 in AutoRound/GPTQ packing
//   M.weight F8_E4M3 + weight_scale_inv   FP8 with 128x128 blocks
//   M.weight BF16, F16, F32               plain
//   X.experts.N.gate_proj                 also as row range N of a fused X.experts.gate_up_proj
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "weights/weight_source.h"

namespace slip {

class CheckpointSource : public WeightSource {
 public:
  // Tensors under an ignored prefix (a vision tower, an MTP layer that is not wanted) are not
  // "extra".
  CheckpointSource(const Checkpoint& checkpoint, std::vector<std::string> ignored_prefixes);

  Result<WeightInfo> describe(const std::string& module, int64_t out, int64_t in) override;
  Status read(const std::string& module, const Weight& plain) override;
  Status read_rows(const MatrixRows& rows, const Weight& plain) override;
  uint64_t place(const std::string& module) const override;
  std::span<const std::byte> mapped(const std::string& module, const WeightInfo& info) override;
  Status read_vector(const std::string& name, const Shape& shape, std::span<float> values) override;
  std::optional<std::string> missing_matrix(const std::string& module) const override;
  bool has_vector(const std::string& name) const override;
  Status check_all_used() override;
  void spare_page_cache() override { page_cache_ = MappedFile::PageCache::drop; }

 private:
  // A 2-D matrix, or one expert's row range of a fused 3-D tensor.
  struct PlainMatrix {
    const StoredTensor* tensor = nullptr;
    size_t offset = 0;  // bytes into the tensor
  };

  Result<PlainMatrix> find_plain(const std::string& module, int64_t out, int64_t in);
  Result<WeightInfo> describe_int4(const std::string& module, int64_t out, int64_t in);
  Result<WeightInfo> describe_fp8(const std::string& module, const StoredTensor& weight);
  Status read_int4(const std::string& module, const Weight& plain);
  Status read_fp8(const std::string& module, const Weight& plain);
  const StoredTensor* use(const std::string& name);
  void count_expert(const StoredTensor& tensor, int64_t expert);
  void drop_pages(const StoredTensor& tensor, std::span<const std::byte> part) const;

  const Checkpoint& checkpoint_;
  MappedFile::PageCache page_cache_ = MappedFile::PageCache::keep;
  std::vector<std::string> ignored_prefixes_;
  std::mutex mutex_;  // guards what follows
  std::set<std::string, std::less<>> used_;
  std::map<std::string, int64_t> experts_used_;  // by fused tensor, from the first on
};

}  // namespace slip
