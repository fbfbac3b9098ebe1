// A safetensors file of arrays, read as floats or integers, and where the golden files lie.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "checkpoint/safetensors.h"

namespace slip {

class GoldenFile {
 public:
  // A file that cannot be read stops the test program: it is part of the repository.
  explicit GoldenFile(const std::filesystem::path& path);

  bool has(const std::string& name) const;
  std::vector<int64_t> shape(const std::string& name) const { return entry(name).shape; }
  std::vector<float> floats(const std::string& name) const;  // F32
  std::vector<int32_t> ints(const std::string& name) const;  // I32 or U16

 private:
  const TensorEntry& entry(const std::string& name) const;

  MappedFile file_;
  SafetensorsHeader header_;
};

// The repository's own files.
std::filesystem::path golden_folder();  // tests/data/golden
std::filesystem::path minnow_folder();  // models/minnow
// What lies beside the repository, where it does.
std::filesystem::path shared_folder();
bool has_shared();

// Of minnow/prompts.json.
std::vector<int32_t> prompt_ids(const std::string& name);
std::vector<std::string> prompt_names();

}  // namespace slip

// For tests of what is not in the repository.
#define SLIP_SKIP_WITHOUT_SHARED()                                                      \
  if (!slip::has_shared())                                                              \
  GTEST_SKIP() << "NOT TESTED: " << slip::shared_folder().string() << " is absent; it " \
               << "holds the bf16 and fp8 forms of minnow and their goldens"
