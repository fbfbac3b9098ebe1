// Input: a safetensors file; then the same bytes once more as a header in front of 64 data bytes,
// so that a mutation need not hit the length field to get anywhere.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "checkpoint/safetensors.h"

namespace {

void parse(std::span<const std::byte> file) {
  const auto header = slip::parse_safetensors_header(file, file.size(), "fuzz");
  if (!header.ok()) {
    slip::check(header.failure().message.starts_with("fuzz: "), "an error without its file");
    return;
  }
  for (const slip::TensorEntry& tensor : header.value().tensors) {
    slip::check(tensor.offset <= file.size() && tensor.bytes <= file.size() - tensor.offset,
                "a tensor outside its file");
    int64_t bytes = slip::bytes_per_value(tensor.type);
    for (const int64_t size : tensor.shape) bytes *= size;
    slip::check(uint64_t(bytes) == tensor.bytes, "a shape that does not fit its bytes");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span input(reinterpret_cast<const std::byte*>(data), size);
  parse(input);
  std::vector<std::byte> file(8);
  for (size_t i = 0; i < 8; ++i) file[i] = std::byte(size >> (8 * i));
  file.insert(file.end(), input.begin(), input.end());
  file.resize(file.size() + 64);
  parse(file);
  return 0;
}
