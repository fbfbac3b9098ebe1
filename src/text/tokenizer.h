// Text to token ids and back, as a model's tokenizer.json says. The ids are those of Hugging Face's
// tokenizers without automatic special tokens.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/bpe.h"
#include "text/pretokenizer.h"
#include "text/tokenizer_added.h"
#include "text/tokenizer_decoder.h"
#include "text/tokenizer_normalizer.h"

namespace slip {

// What text such as "<|im_end|>" means in the input.
enum class AddedTokens {
  kRecognise,  // the token: for rendered templates
  kAsText,     // just these characters: for text from outside that must not end a turn
};

// Immutable; one object may serve many threads.
class Tokenizer {
 public:
  // `source` starts error messages. Whatever in the file is not implemented is refused by name.
  static Result<Tokenizer> from_json(std::string_view json_text, const std::string& source);

  // Reads tokenizer.json, and the added tokens that only tokenizer_config.json lists.
  static Result<Tokenizer> load(const std::filesystem::path& model_dir);

  // Invalid UTF-8 is read as one U+FFFD per maximal invalid part.
  std::vector<int32_t> encode(std::string_view text,
                              AddedTokens added = AddedTokens::kRecognise) const;

  // Puts the token that begins every text (BOS) in front of a prompt, if the model has one and the
  // prompt does not begin with it: chat templates write it themselves, and twice is wrong.
  void add_bos(std::vector<int32_t>& prompt) const;

  // Bytes that make no UTF-8 become U+FFFD; ids without a token become nothing.
  std::string decode(std::span<const int32_t> ids, bool skip_special = false) const;

  // The bytes a token stands for, maybe part of a character; empty for ids without a token.
  std::string_view token_bytes(int32_t id) const;

  // A token like "<0x0A>". A run of these is text only if it is valid UTF-8 as a whole.
  bool is_fallback_byte(int32_t id) const { return has_flag(id, kFallbackByte); }
  bool is_special(int32_t id) const { return has_flag(id, kSpecial); }

  // The id of a token as the files spell it: "<|im_end|>", "Ġthe".
  std::optional<int32_t> find(std::string_view token) const;

  // The highest id + 1. The model's embedding may have more rows.
  int32_t vocab_size() const { return int32_t(flags_.size()); }

 private:
  static constexpr uint8_t kSpecial = 1;
  static constexpr uint8_t kFallbackByte = 2;
  struct EncodeState;

  Tokenizer() = default;

  // `config` is tokenizer_config.json, maybe empty.
  static Result<Tokenizer> build(const Json& json, const JsonObject& config);
  Status find_bos(const JsonObject& tokenizer, const JsonObject& config);
  Status add_tokens(const std::vector<AddedToken>& tokens, TokenContents& contents);
  void store_bytes(const TokenContents& contents, const TokenDecoder& decoder);

  bool has_flag(int32_t id, uint8_t flag) const {
    return id >= 0 && id < vocab_size() && (flags_[size_t(id)] & flag);
  }
  void encode_normalised(std::string_view text, EncodeState& state) const;

  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  Bpe bpe_;
  AddedTokenMatcher raw_matcher_;         // tokens looked for in the text as given
  AddedTokenMatcher normalised_matcher_;  // tokens looked for after normalisation
  TokenTable added_ids_;
  std::optional<int32_t> bos_;  // written in front of every text

  std::string bytes_;              // what all tokens stand for, by id
  std::vector<size_t> byte_ends_;  // [ids]: where each token's bytes end
  std::vector<uint8_t> flags_;     // [ids]
};

}  // namespace slip
