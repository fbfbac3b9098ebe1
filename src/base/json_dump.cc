#include "base/json_dump.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace slip {
namespace {

struct Decoded {
  uint32_t code;
  size_t length;
};

// The character at the start of `text`; a byte that is no valid UTF-8 stands for itself.
Decoded decode_utf8(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (length == 1 || text.size() < length) return {lead, 1};
  uint32_t code = lead & (0x7Fu >> length);
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {lead, 1};
    code = code << 6 | (byte(i) & 0x3Fu);
  }
  return {code, length};
}

void append_hex_escape(std::string& out, uint32_t unit) {
  static constexpr char kDigits[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[unit >> shift & 15];
}

void append_unicode_escape(std::string& out, uint32_t code) {
  if (code < 0x10000) return append_hex_escape(out, code);
  code -= 0x10000;
  append_hex_escape(out, 0xD800 + (code >> 10 & 0x3FF));
  append_hex_escape(out, 0xDC00 + (code & 0x3FF));
}

// Recursion follows the value's nesting, which parse_json and the template engine both bound.
class Writer {
 public:
  explicit Writer(const JsonStyle& style) : style_(style) {}

  void write(const Json& value) {
    switch (value.kind()) {
      case boost::json::kind::null: out_ += "null"; return;
      case boost::json::kind::bool_: out_ += value.get_bool() ? "true" : "false"; return;
      case boost::json::kind::int64: out_ += std::to_string(value.get_int64()); return;
      case boost::json::kind::uint64: out_ += std::to_string(value.get_uint64()); return;
      case boost::json::kind::double_: write_double(value.get_double()); return;
      case boost::json::kind::string: write_string(value.get_string()); return;
      case boost::json::kind::array: write_array(value.get_array()); return;
      case boost::json::kind::object: write_object(value.get_object()); return;
    }
    unreachable("boost::json::kind");
  }

  std::string take() { return std::move(out_); }

 private:
  // Python would print Infinity and NaN, which no JSON reader takes; null is what browsers print.
  void write_double(double value) { out_ += std::isfinite(value) ? format_double(value) : "null"; }

  void write_string(std::string_view text) {
    out_ += '"';
    append_json_escaped(out_, text, style_.ascii_only);
    out_ += '"';
  }

  void new_line() {
    if (!style_.multiline) return;
    out_ += '\n';
    for (int i = 0; i < level_; ++i) out_ += style_.indent;
  }

  template <class Range, class WriteItem>
  void write_items(char open, char close, const Range& items, const WriteItem& write_item) {
    out_ += open;
    ++level_;
    bool first = true;
    for (const auto& item : items) {
      if (!first) out_ += style_.item_separator;
      first = false;
      new_line();
      write_item(item);
    }
    --level_;
    if (!first) new_line();
    out_ += close;
  }

  void write_array(const JsonArray& items) {
    write_items('[', ']', items, [&](const Json& item) { write(item); });
  }

  void write_object(const JsonObject& object) {
    std::vector<const JsonObject::value_type*> members;
    for (const auto& member : object) members.push_back(&member);
    if (style_.sort_keys)
      std::stable_sort(members.begin(), members.end(),
                       [](const auto* a, const auto* b) { return a->key() < b->key(); });
    write_items('{', '}', members, [&](const JsonObject::value_type* member) {
      write_string(member->key());
      out_ += style_.key_separator;
      write(member->value());
    });
  }

  const JsonStyle& style_;
  std::string out_;
  int level_ = 0;
};

}  // namespace

void append_json_quoted(std::string& out, std::string_view text) {
  out += '"';
  append_json_escaped(out, text);
  out += '"';
}

std::string json_quoted(std::string_view text) {
  std::string out;
  append_json_quoted(out, text);
  return out;
}

void append_json_escaped(std::string& out, std::string_view text, bool ascii_only) {
  for (size_t i = 0; i < text.size();) {
    const auto byte = static_cast<uint8_t>(text[i]);
    size_t length = 1;
    switch (byte) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '\b': out += "\\b"; break;
      case '\f': out += "\\f"; break;
      default:
        if (byte < 0x20 || (ascii_only && byte >= 0x7F)) {
          const Decoded decoded = decode_utf8(text.substr(i));
          append_unicode_escape(out, decoded.code);
          length = decoded.length;
        } else {
          out += text[i];
        }
    }
    i += length;
  }
}

std::string format_double(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  // "-d.ddde-XX": take sign, digits and exponent apart, then lay them out as Python does.
  std::string_view printed(buffer.data(), static_cast<size_t>(end - buffer.data()));
  std::string out;
  if (printed.front() == '-') {
    out += '-';
    printed.remove_prefix(1);
  }
  const size_t e = printed.find('e');
  const int exponent = std::stoi(std::string(printed.substr(e + 1)));
  std::string digits(printed.substr(0, 1));
  if (e > 2) digits += printed.substr(2, e - 2);

  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out += "." + digits.substr(1);
    out += exponent < 0 ? "e-" : "e+";
    if (std::abs(exponent) < 10) out += '0';
    return out + std::to_string(std::abs(exponent));
  }
  if (exponent < 0)
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) return out + digits + std::string(whole - digits.size(), '0') + ".0";
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string dump_json(const Json& value, const JsonStyle& style) {
  Writer writer(style);
  writer.write(value);
  return writer.take();
}

std::string dump_json(const Json& value) { return dump_json(value, JsonStyle{}); }

std::string dump_json(const Json& value, int indent) {
  return dump_json(value,
                   JsonStyle{.indent = std::string(static_cast<size_t>(std::max(indent, 0)), ' '),
                             .multiline = true,
                             .item_separator = ","});
}

}  // namespace slip
