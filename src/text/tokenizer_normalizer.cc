#include "text/tokenizer_normalizer.h"

#include <utility>

#include "text/tokenizer_json.h"
#include "text/unicode.h"

namespace slip {

Result<Normalizer> Normalizer::read(const Json& json) {
  Normalizer normalizer;
  if (!json.is_null())
    if (Status added = normalizer.add(json); !added.ok())
      return std::move(added).failure().in("normalizer");
  return normalizer;
}

Status Normalizer::add(const Json& json) {
  SLIP_TRY(const JsonObject* object, require_object(json, "a normalizer"));
  SLIP_TRY(const std::string_view type, read_type(*object));
  if (type == "Sequence") {
    const Json* list = find_field(*object, "normalizers");
    if (!list || !list->is_array()) return error("Sequence: \"normalizers\" must be a list");
    for (const Json& item : list->get_array()) SLIP_TRY_STATUS(add(item));
  } else if (type == "NFC") {
    steps_.emplace_back(Nfc{});
  } else if (type == "Replace") {
    SLIP_TRY(const std::string_view from, read_literal_pattern(*object));
    SLIP_TRY(const std::string_view to, require_string(*object, "content"));
    steps_.emplace_back(Replace{std::string(from), std::string(to)});
  } else if (type == "Prepend") {
    SLIP_TRY(const std::string_view prefix, require_string(*object, "prepend"));
    steps_.emplace_back(Prepend{std::string(prefix)});
  } else {
    return error("the type \"", type, "\" is not implemented");
  }
  return {};
}

std::string_view Normalizer::apply(std::string_view text, std::string& storage) const {
  std::string spare;  // `text` may be a view of `storage`, so a step writes here
  for (const Step& step : steps_) {
    spare.clear();
    if (std::holds_alternative<Nfc>(step)) {
      const std::string_view normalised = to_nfc(text, spare);
      if (normalised.data() == text.data()) continue;
    } else if (const auto* replace = std::get_if<Replace>(&step)) {
      append_replaced(text, replace->from, replace->to, spare);
    } else if (!text.empty()) {
      spare = std::get<Prepend>(step).prefix;
      spare += text;
    }
    std::swap(storage, spare);
    text = storage;
  }
  return text;
}

void append_replaced(std::string_view text, std::string_view from, std::string_view to,
                     std::string& out) {
  size_t done = 0;
  for (size_t hit; (hit = text.find(from, done)) != std::string_view::npos;) {
    out.append(text, done, hit - done);
    out += to;
    done = hit + from.size();
  }
  out.append(text, done);
}

}  // namespace slip
