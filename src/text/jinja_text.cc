#include "text/jinja_text.h"

#include <utf8proc.h>

#include <algorithm>

#include "text/utf8.h"

namespace slip::jinja {
namespace {

// Simple case mappings do not know that this one has two capitals.
constexpr uint32_t kSharpS = 0xDF;

void append_upper(std::string& out, uint32_t code) {
  if (code == kSharpS) {
    out += "SS";
  } else {
    append_utf8(static_cast<uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(code))), out);
  }
}

void append_title(std::string& out, uint32_t code) {
  if (code == kSharpS) {
    out += "Ss";
  } else {
    append_utf8(static_cast<uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(code))), out);
  }
}

void append_lower(std::string& out, uint32_t code) {
  append_utf8(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(code))), out);
}

// Calls visit(code, bytes) for each character; code is absent where the bytes are not UTF-8.
template <class Visit>
void for_each_character(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const Character c = decode_character(text);
    const bool valid = c.length > 1 || c.code < 0x80;
    visit(valid ? std::optional<uint32_t>(c.code) : std::nullopt, text.substr(0, c.length));
    text.remove_prefix(c.length);
  }
}

bool is_cased(uint32_t code) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}

bool is_printable(uint32_t code) {
  if (code == ' ') return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    default: return true;
  }
}

void append_hex(std::string& out, const char* mark, uint32_t code, int digits) {
  out += mark;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4)
    out += "0123456789abcdef"[code >> shift & 15];
}

}  // namespace

bool is_space(uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 ||
         code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

Character decode_character(std::string_view text) {
  utf8proc_int32_t code = -1;
  const auto length =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                       static_cast<utf8proc_ssize_t>(std::min<size_t>(text.size(), 4)), &code);
  if (length < 1) return {static_cast<uint8_t>(text[0]), 1};
  return {static_cast<uint32_t>(code), static_cast<size_t>(length)};
}

size_t count_characters(std::string_view text) {
  size_t count = 0;
  for (; !text.empty(); ++count) text.remove_prefix(decode_character(text).length);
  return count;
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, decode_character(text).length));
    text.remove_prefix(out.back().size());
  }
  return out;
}

std::string to_upper(std::string_view text) {
  std::string out;
  for_each_character(text, [&](std::optional<uint32_t> code, std::string_view bytes) {
    code ? append_upper(out, *code) : void(out += bytes);
  });
  return out;
}

std::string to_lower(std::string_view text) {
  std::string out;
  for_each_character(text, [&](std::optional<uint32_t> code, std::string_view bytes) {
    code ? append_lower(out, *code) : void(out += bytes);
  });
  return out;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return "";
  const Character first = decode_character(text);
  std::string out;
  if (first.length > 1 || first.code < 0x80) {
    append_title(out, first.code);
  } else {
    out += text[0];
  }
  return out + to_lower(text.substr(first.length));
}

std::string title_case(std::string_view text) {
  std::string out;
  bool in_word = false;
  for_each_character(text, [&](std::optional<uint32_t> code, std::string_view bytes) {
    if (!code) {
      out += bytes;
      in_word = false;
      return;
    }
    in_word ? append_lower(out, *code) : append_title(out, *code);
    in_word = is_cased(*code);
  });
  return out;
}

std::string title_case_words(std::string_view text) {
  std::string out;
  bool word_begins = true;
  for_each_character(text, [&](std::optional<uint32_t> code, std::string_view bytes) {
    const bool parts = code && (is_space(*code) ||
                                std::string_view("-({[<").find(bytes) != std::string_view::npos);
    if (!code || parts) {
      out += bytes;
    } else {
      word_begins ? append_upper(out, *code) : append_lower(out, *code);
    }
    word_begins = parts;
  });
  return out;
}

bool has_letters(std::string_view text) {
  bool found = false;
  for_each_character(text, [&](std::optional<uint32_t> code, std::string_view) {
    found = found || (code && is_cased(*code));
  });
  return found;
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&#34;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string quoted(std::string_view text) {
  const bool double_quotes =
      text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for_each_character(text, [&](std::optional<uint32_t> code, std::string_view bytes) {
    if (!code) return append_hex(out, "\\x", static_cast<uint8_t>(bytes[0]), 2);
    if (*code == static_cast<uint32_t>(quote) || *code == '\\') {
      out += '\\';
      out += bytes;
    } else if (*code == '\n') {
      out += "\\n";
    } else if (*code == '\r') {
      out += "\\r";
    } else if (*code == '\t') {
      out += "\\t";
    } else if (is_printable(*code)) {
      out += bytes;
    } else if (*code < 0x100) {
      append_hex(out, "\\x", *code, 2);
    } else if (*code < 0x10000) {
      append_hex(out, "\\u", *code, 4);
    } else {
      append_hex(out, "\\U", *code, 8);
    }
  });
  return out += quote;
}

}  // namespace slip::jinja
