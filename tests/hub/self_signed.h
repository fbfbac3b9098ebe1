// A certificate for 127.0.0.1 that lasts as long as a test.
#pragma once

#include <filesystem>
#include <string>

namespace slip {

// Writes cert.pem and key.pem into the folder.
struct SelfSigned {
  explicit SelfSigned(const std::filesystem::path& folder);
  std::string certificate, key;  // the files
};

}  // namespace slip
