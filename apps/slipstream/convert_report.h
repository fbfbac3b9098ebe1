// What a conversion has cost, measured on a text: perplexity, distance from the source, drafts.
#pragma once

#include <filesystem>
#include <string>

#include "backend.h"

namespace slip {

struct QualityRequest {
  std::filesystem::path source, made;
  std::string text;       // a file
  int64_t length = 1024;  // tokens of a window; each is read from nothing
  int64_t windows = 8;    // at most, from the beginning
};

// A few lines for people.
Result<std::string> quality_report(const QualityRequest& request, const Backend& backend);

}  // namespace slip
