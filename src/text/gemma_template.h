// Gemma 4's chat format as a template, for repositories that come without one.
#pragma once

#include <string_view>

namespace slip {

extern const std::string_view kGemmaTemplate;

}  // namespace slip
