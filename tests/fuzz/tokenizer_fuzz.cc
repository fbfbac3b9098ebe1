// Input that starts with '{' is a tokenizer.json; whatever loads must encode and decode a sample.
// Other input is text for a tokenizer that has every byte, which must give the text back.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace slip {
namespace {

constexpr std::string_view kSample =
    "Hello  world's 12\n\n<|im_end|> <x> caf\u00E9 cafe\u0301 \u65E5\u672C\U0001F600 \xF0\x9F ab "
    "abab";

void check_decoding(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  Detokenizer detokenizer(tokenizer);
  std::string joined;
  for (const int32_t id : ids) {
    const std::string part = detokenizer.push(id);
    check(is_valid_utf8(part), "push() returned invalid UTF-8");
    joined += part;
  }
  joined += detokenizer.finish();
  check(joined == tokenizer.decode(ids), "push() and decode() differ");
}

void try_tokenizer(std::string_view json) {
  const Result<Tokenizer> tokenizer = Tokenizer::from_json(json, "fuzz");
  if (!tokenizer.ok()) {
    check(!tokenizer.failure().message.empty(), "an error must say something");
    return;
  }
  const std::vector<int32_t> ids = tokenizer.value().encode(kSample);
  for (const int32_t id : ids)
    check(id >= 0 && id < tokenizer.value().vocab_size(), "encode() gave id ", id);
  check_decoding(tokenizer.value(), ids);
  std::vector<int32_t> all = {-1, INT32_MAX};
  for (int32_t id = 0; id < std::min(tokenizer.value().vocab_size(), 1000); ++id) all.push_back(id);
  check_decoding(tokenizer.value(), all);
  tokenizer.value().encode(kSample, AddedTokens::kAsText);
}

// Byte-level, Qwen3.5's pattern, no normaliser, some merges.
Tokenizer make_byte_tokenizer() {
  std::string vocabulary;
  int next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    std::string character;
    append_utf8(uint32_t(printable ? byte : next++), character);
    const char* escape = byte == '"' || byte == '\\' ? "\\" : "";
    vocabulary += cat("\"", escape, character, "\": ", byte, ", ");
  }
  const std::string json =
      R"({"added_tokens": [{"id": 300, "content": "<|im_end|>", "special": true}],
          "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "behavior": "Isolated", "pattern": {"Regex":
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
            {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
          "decoder": {"type": "ByteLevel"},
          "model": {"type": "BPE", "vocab": {)" +
      vocabulary + R"("ab": 256, "abab": 257, "ĠĠ": 258, "aa": 259},
          "merges": ["a b", "ab ab", "Ġ Ġ", "a a"]}})";
  return Tokenizer::from_json(json, "the fuzzer's own").value();
}

void try_text(std::string_view text) {
  static const Tokenizer tokenizer = make_byte_tokenizer();
  std::string expected;
  append_lossy_utf8(text, expected);
  for (const AddedTokens added : {AddedTokens::kRecognise, AddedTokens::kAsText}) {
    const std::vector<int32_t> ids = tokenizer.encode(text, added);
    check(tokenizer.decode(ids) == expected, "decode(encode(text)) is not the text");
    check_decoding(tokenizer, ids);
  }
}

}  // namespace
}  // namespace slip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.starts_with('{')) {
    slip::try_tokenizer(input);
  } else {
    slip::try_text(input);
  }
  return 0;
}
