#include "text/special_token_guard.h"

#include <algorithm>
#include <utility>

namespace slip {
namespace {

// Noncharacters of Unicode, which are not for interchange.
constexpr std::string_view kMarkStart = "\xEF\xB7";
constexpr std::string_view kOpen = "\xEF\xB7\x90";   // U+FDD0
constexpr std::string_view kClose = "\xEF\xB7\x91";  // U+FDD1

bool begins_with_mark(std::string_view text) {
  return text.starts_with(kOpen) || text.starts_with(kClose) ||
         text.starts_with(SpecialTokenGuard::kPlace);
}

}  // namespace

SpecialTokenGuard::SpecialTokenGuard(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string_view bytes = tokenizer.token_bytes(id);
    if (!tokenizer.is_special(id) || bytes.empty()) continue;
    spellings_.emplace_back(bytes);
    if (first_bytes_.find(bytes[0]) == std::string::npos) first_bytes_ += bytes[0];
  }
  // The longest match is the one a tokenizer would take.
  std::sort(spellings_.begin(), spellings_.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });
}

std::string SpecialTokenGuard::without_marks(std::string_view text) {
  std::string out;
  while (true) {
    const size_t at = std::min(text.find(kMarkStart), text.size());
    out += text.substr(0, at);
    text.remove_prefix(at);
    if (text.empty()) return out;
    const size_t kept = begins_with_mark(text) ? 0 : kMarkStart.size();
    out += text.substr(0, kept);
    text.remove_prefix(kept == 0 ? kOpen.size() : kept);
  }
}

std::string_view SpecialTokenGuard::special_at(std::string_view text) const {
  for (const std::string& spelling : spellings_)
    if (text.starts_with(spelling)) return spelling;
  return {};
}

std::string SpecialTokenGuard::marked(std::string_view text) const {
  const std::string clean = without_marks(text);
  std::string out;
  for (std::string_view rest = clean; !rest.empty();) {
    const size_t plain = std::min(rest.find_first_of(first_bytes_), rest.size());
    out += rest.substr(0, plain);
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    const std::string_view special = special_at(rest);
    if (special.empty())
      out += rest[0];
    else
      out.append(kOpen).append(special).append(kClose);
    rest.remove_prefix(std::max<size_t>(special.size(), 1));
  }
  return out;
}

void SpecialTokenGuard::mark(Json& value) const {
  if (value.is_string()) {
    value = marked(value.get_string());
  } else if (value.is_array()) {
    for (Json& item : value.get_array()) mark(item);
  } else if (value.is_object()) {
    JsonObject out;
    for (auto& entry : value.get_object()) {
      mark(entry.value());
      out[marked(entry.key())] = std::move(entry.value());
    }
    value = std::move(out);
  }
}

std::vector<int32_t> SpecialTokenGuard::encode(std::string_view rendered) const {
  std::vector<int32_t> ids;
  const auto add = [&](std::string_view text, AddedTokens added) {
    const std::vector<int32_t> more = tokenizer_.encode(without_marks(text), added);
    ids.insert(ids.end(), more.begin(), more.end());
  };
  while (!rendered.empty()) {
    const size_t open = std::min(rendered.find(kOpen), rendered.size());
    add(rendered.substr(0, open), AddedTokens::kRecognise);
    rendered.remove_prefix(open);
    if (rendered.empty()) break;
    const size_t close = std::min(rendered.find(kClose), rendered.size());
    add(rendered.substr(0, close), AddedTokens::kAsText);
    rendered.remove_prefix(close);
  }
  return ids;
}

}  // namespace slip
