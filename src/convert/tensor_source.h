// Where a converter reads tensors: a folder, or a repository on a hub of which only the needed
// bytes are fetched.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/checkpoint.h"

namespace slip {

struct SourceTensor {
  std::string name;
  StoredType type;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // "Qwen/Qwen3.5-122B-A10B-FP8 at 0123abc", for reports and provenance; no path of this machine.
  virtual std::string origin() const = 0;

  // Every name, sorted.
  virtual const std::vector<std::string>& names() const = 0;
  bool has(std::string_view name) const;

  // Types and shapes of some of them, in their order.
  virtual Result<std::vector<SourceTensor>> describe(std::span<const std::string> names) = 0;

  // Fills `into`, which has as many bytes as describe() said.
  virtual Status read(const SourceTensor& tensor, std::span<std::byte> into) = 0;
};

// The files of a folder.
class FolderSource : public TensorSource {
 public:
  static Result<std::unique_ptr<FolderSource>> open(const std::filesystem::path& folder);

  const Checkpoint& checkpoint() const { return checkpoint_; }

  std::string origin() const override;
  const std::vector<std::string>& names() const override { return names_; }
  Result<std::vector<SourceTensor>> describe(std::span<const std::string> names) override;
  Status read(const SourceTensor& tensor, std::span<std::byte> into) override;

 private:
  explicit FolderSource(Checkpoint checkpoint);

  Checkpoint checkpoint_;
  std::vector<std::string> names_;
};

}  // namespace slip
