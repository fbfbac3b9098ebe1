// Input: the text of model.safetensors.index.json.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "checkpoint/index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto index =
      slip::parse_index(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!index.ok()) {
    slip::check(index.failure().message.starts_with("fuzz: "), "an error without its file");
    return 0;
  }
  for (const std::string& file : index.value().files)
    slip::check(file.find('/') == std::string::npos && file != "..",
                "a name that leaves the folder");
  const auto& entries = index.value().entries;
  for (const slip::IndexEntry& entry : entries)
    slip::check(entry.file < index.value().files.size(), "an entry without a file");
  slip::check(std::is_sorted(entries.begin(), entries.end(),
                             [](const auto& a, const auto& b) { return a.tensor < b.tensor; }),
              "entries out of order");
  return 0;
}
