#include "text/tokenizer.h"

#include "text/detokenizer.h"
#include "text/utf8.h"

namespace slip {

struct Tokenizer::EncodeState {
  std::vector<int32_t> ids;
  BpeScratch scratch;
};

std::vector<int32_t> Tokenizer::encode(std::string_view text, AddedTokens added) const {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    append_lossy_utf8(text, repaired);
    text = repaired;
  }
  EncodeState state;
  state.ids.reserve(text.size() / 4 + 1);
  const auto on_token = [&state](int32_t id) { state.ids.push_back(id); };
  const auto on_normalised = [&](std::string_view part) { encode_normalised(part, state); };
  std::string storage;
  if (added == AddedTokens::kAsText) {
    on_normalised(normalizer_.apply(text, storage));
    return std::move(state.ids);
  }
  const auto on_raw = [&](std::string_view part) {
    normalised_matcher_.split(normalizer_.apply(part, storage), on_normalised, on_token);
  };
  raw_matcher_.split(text, on_raw, on_token);
  return std::move(state.ids);
}

void Tokenizer::add_bos(std::vector<int32_t>& prompt) const {
  if (bos_ && (prompt.empty() || prompt.front() != *bos_)) prompt.insert(prompt.begin(), *bos_);
}

void Tokenizer::encode_normalised(std::string_view text, EncodeState& state) const {
  for (size_t pos = 0; pos < text.size();) {
    const size_t end = pre_tokenizer_.piece_end(text, pos);
    bpe_.encode(text.substr(pos, end - pos), state.scratch, state.ids);
    pos = end;
  }
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  Detokenizer detokenizer(*this, skip_special);
  std::string text;
  for (const int32_t id : ids) text += detokenizer.push(id);
  text += detokenizer.finish();
  return text;
}

std::string_view Tokenizer::token_bytes(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  const size_t begin = id == 0 ? 0 : byte_ends_[size_t(id) - 1];
  return std::string_view(bytes_).substr(begin, byte_ends_[size_t(id)] - begin);
}

std::optional<int32_t> Tokenizer::find(std::string_view token) const {
  if (const std::optional<int32_t> id = added_ids_.find(token)) return id;
  return bpe_.find(token);
}

}  // namespace slip
