#include "text/tokenizer_decoder.h"

#include <charconv>

#include "text/byte_level.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_normalizer.h"

namespace slip {

Result<TokenDecoder> TokenDecoder::read(const Json& json, bool byte_level) {
  TokenDecoder decoder;
  if (Status added = decoder.add(json); !added.ok())
    return std::move(added).failure().in("decoder");
  if (decoder.byte_level_ != byte_level)
    return error("only one of pre_tokenizer and decoder is ByteLevel");
  if (byte_level && (decoder.byte_fallback_ || !decoder.replacements_.empty()))
    return error("decoder: ByteLevel beside other types is not implemented");
  return decoder;
}

Status TokenDecoder::add(const Json& json) {
  SLIP_TRY(const JsonObject* object, require_object(json, "a decoder"));
  SLIP_TRY(const std::string_view type, read_type(*object));
  if (type == "Sequence") {
    const Json* list = find_field(*object, "decoders");
    if (!list || !list->is_array()) return error("Sequence: \"decoders\" must be a list");
    for (const Json& item : list->get_array()) SLIP_TRY_STATUS(add(item));
  } else if (type == "ByteLevel") {
    byte_level_ = true;
  } else if (type == "ByteFallback" && !fuse_) {
    byte_fallback_ = true;
  } else if (type == "Fuse") {
    fuse_ = true;
  } else if (type == "Replace" && !byte_fallback_ && !fuse_) {
    SLIP_TRY(const std::string_view from, read_literal_pattern(*object));
    SLIP_TRY(const std::string_view to, require_string(*object, "content"));
    replacements_.emplace_back(from, to);
  } else {
    return error("the type \"", type, "\" is not implemented",
                 byte_fallback_ || fuse_ ? " after ByteFallback or Fuse" : "");
  }
  return {};
}

bool TokenDecoder::append_bytes(std::string_view content, std::string& out) const {
  if (byte_level_) {
    if (!append_byte_level(content, out)) out += content;
    return false;
  }
  std::string text(content);
  for (const auto& [from, to] : replacements_) {
    std::string replaced;
    append_replaced(text, from, to, replaced);
    text = std::move(replaced);
  }
  if (byte_fallback_ && text.size() == 6 && text.starts_with("<0x") && text.ends_with('>')) {
    unsigned byte = 0;
    const char* digits_end = text.data() + 5;
    const auto [end, code] = std::from_chars(text.data() + 3, digits_end, byte, 16);
    if (code == std::errc() && end == digits_end) {
      out.push_back(char(static_cast<unsigned char>(byte)));
      return true;
    }
  }
  out += text;
  return false;
}

}  // namespace slip
