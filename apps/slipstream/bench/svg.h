// What the charts share.
#pragma once

#include <string>

#include "base/text.h"

namespace slip {

// Text as it may stand in an element or an attribute.
inline std::string svg_escaped(const std::string& text) {
  std::string out;
  for (const char byte : text) {
    switch (byte) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += byte;
    }
  }
  return out;
}

inline std::string svg_text(double x, double y, const std::string& attributes,
                            const std::string& text) {
  return cat("<text x=\"", x, "\" y=\"", y, "\"", attributes, ">", svg_escaped(text), "</text>\n");
}

}  // namespace slip
