#include "server/prompt_limit.h"

#include <algorithm>
#include <utility>

namespace slip {
namespace {

// Composing characters (NFC) leaves at least a third of their bytes, and the marks around special
// tokens in rendered text are shorter than two of these tokens. ASCII stays as it is, but for one
// character before each that is not.
constexpr size_t kMostShortened = 4;

size_t fewest_bytes_when_normalised(std::string_view text) {
  const auto others = size_t(
      std::count_if(text.begin(), text.end(), [](char byte) { return uint8_t(byte) >= 0x80; }));
  const size_t untouched = text.size() - std::min(text.size(), 2 * others);
  return std::max(text.size() / kMostShortened, untouched);
}

}  // namespace

PromptLimit::PromptLimit(const Tokenizer& tokenizer, std::function<int64_t()> context)
    : context_(std::move(context)) {
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id)
    longest_ = std::max(longest_, tokenizer.token_bytes(id).size());
}

ApiStatus PromptLimit::check(std::string_view text, std::string_view field) const {
  const auto fewest = int64_t(fewest_bytes_when_normalised(text) / longest_);
  const int64_t context = context_();
  if (fewest <= context) return std::nullopt;
  ApiError error = bad_request(
      cat("This model's maximum context length is ", context, " tokens. However, your prompt has ",
          text.size(), " bytes, which are at least ", fewest,
          " tokens. Please reduce the length of the prompt."),
      std::string(field));
  error.code = "context_length_exceeded";
  error.details = {{"n_prompt_tokens", fewest}, {"n_ctx", context}};
  return error;
}

}  // namespace slip
