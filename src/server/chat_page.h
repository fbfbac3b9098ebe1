#pragma once

#include <string_view>

namespace slip {

// web/dist/index.html, as it was when this was built.
std::string_view chat_page();

}  // namespace slip
