#include "grammar/token_index.h"

#include <algorithm>
#include <numeric>

#include "text/utf8.h"

namespace slip {
namespace {

// Longer ones are left out; real vocabularies stay below 256.
constexpr size_t kMaxTokenBytes = 1024;

// Orders most tokens by one comparison of numbers instead of one of texts.
uint64_t leading_bytes(std::string_view text) {
  uint64_t key = 0;
  for (size_t i = 0; i < 8; ++i) key = key << 8 | (i < text.size() ? uint8_t(text[i]) : 0);
  return key;
}

size_t common_prefix(std::string_view a, std::string_view b) {
  const size_t length = std::min(a.size(), b.size());
  return size_t(std::mismatch(a.begin(), a.begin() + ptrdiff_t(length), b.begin()).first -
                a.begin());
}

bool is_of_kind(uint32_t character, TextKind kind) {
  switch (kind) {
    case TextKind::json_string:
      return character >= 0x20 && character != '"' && character != '\\' && character != 0x2028 &&
             character != 0x2029;
    case TextKind::no_tag: return character != '<';
  }
  unreachable("TextKind");
}

// The part at a token's end that is made of whole characters of a kind.
struct TextTail {
  size_t begin = 0;
  size_t characters = 0;
};

TextTail text_tail(std::string_view text, TextKind kind) {
  TextTail tail;
  for (size_t at = 0; at < text.size();) {
    size_t length = 1;
    while (length < 4 && at + length < text.size() && (uint8_t(text[at + length]) & 0xC0) == 0x80)
      ++length;
    const std::string_view character = text.substr(at, length);
    at += length;
    if (is_valid_utf8(character) && is_of_kind(decode_valid_utf8(character.data()).value, kind))
      ++tail.characters;
    else
      tail = {at, 0};
  }
  return tail;
}

}  // namespace

std::shared_ptr<const TokenIndex> TokenIndex::make(const Tokenizer& tokenizer) {
  const std::shared_ptr<TokenIndex> index(new TokenIndex);
  index->collect(tokenizer);
  index->build_tree();
  for (int kind = 0; kind < kTextKinds; ++kind) index->find_text_tokens(TextKind(kind));
  return index;
}

void TokenIndex::collect(const Tokenizer& tokenizer) {
  output_format_ = &output_format_of(tokenizer);
  spans_.resize(size_t(tokenizer.vocab_size()));
  for (int32_t id = 0; id < vocabulary(); ++id) {
    const std::string_view text = tokenizer.token_bytes(id);
    if (text.empty() || text.size() > kMaxTokenBytes) continue;
    if (tokenizer.is_special(id)) {
      special_ids_.push_back(id);
      special_texts_.emplace_back(text);
      continue;
    }
    if (text.size() == 1) single_bytes_.add(uint8_t(text[0]));
    spans_[size_t(id)] = {uint32_t(bytes_.size()), uint32_t(text.size())};
    bytes_ += text;
    ordered_ids_.push_back(id);
    max_token_bytes_ = std::max(max_token_bytes_, int(text.size()));
  }
}

void TokenIndex::build_tree() {
  struct Entry {
    uint64_t key;
    int32_t id;
  };
  std::vector<Entry> entries;
  entries.reserve(ordered_ids_.size());
  for (const int32_t id : ordered_ids_) entries.push_back({leading_bytes(bytes(id)), id});
  std::sort(entries.begin(), entries.end(), [this](const Entry& a, const Entry& b) {
    if (a.key != b.key) return a.key < b.key;
    const int order = bytes(a.id).compare(bytes(b.id));
    return order != 0 ? order < 0 : a.id < b.id;
  });

  nodes_.push_back({});
  std::vector<uint32_t> path = {0};  // the nodes above, and the last one itself
  std::string_view previous;
  const auto close_down_to = [&](size_t depth) {
    for (; path.size() > depth + 1; path.pop_back())
      nodes_[path.back()].subtree_end = uint32_t(nodes_.size());
  };
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string_view text = bytes(entries[i].id);
    ordered_ids_[i] = entries[i].id;
    close_down_to(common_prefix(previous, text));
    while (path.size() <= text.size()) {
      const size_t depth = path.size();
      path.push_back(uint32_t(nodes_.size()));
      nodes_.push_back({0, uint32_t(i), uint16_t(depth), uint8_t(text[depth - 1]), 0, 0});
    }
    previous = text;
  }
  close_down_to(0);
  nodes_[0].subtree_end = uint32_t(nodes_.size());
  nodes_.push_back({uint32_t(nodes_.size() + 1), uint32_t(entries.size()), 0, 0, 0, 0});
}

void TokenIndex::find_text_tokens(TextKind kind) {
  std::vector<TextTail> tails;  // by order
  tails.reserve(ordered_ids_.size());
  for (const int32_t id : ordered_ids_) tails.push_back(text_tail(bytes(id), kind));

  // A counting sort by length of those that are nothing else.
  TextTokens& found = text_tokens_[int(kind)];
  found.all = TokenSet(vocabulary());
  found.up_to.assign(size_t(max_token_bytes_) + 1, 0);
  for (const TextTail& tail : tails) found.up_to[tail.characters] += tail.begin == 0;
  std::partial_sum(found.up_to.begin(), found.up_to.end(), found.up_to.begin());
  std::vector<uint32_t> next(found.up_to.size());
  for (size_t length = 1; length < next.size(); ++length) next[length] = found.up_to[length - 1];
  found.ids.resize(found.up_to.empty() ? 0 : found.up_to.back());
  for (size_t i = 0; i < tails.size(); ++i) {
    if (tails[i].begin > 0) continue;
    found.ids[next[tails[i].characters]++] = ordered_ids_[i];
    found.all.add(ordered_ids_[i]);
  }

  // From the leaves up: where the tails of all tokens below a node have begun.
  std::vector<uint32_t> parents(nodes_.size());
  for (uint32_t i = 0; i + 1 < nodes_.size(); ++i)
    for (uint32_t child = i + 1; child < nodes_[i].subtree_end; child = nodes_[child].subtree_end)
      parents[child] = i;
  std::vector<size_t> latest_below(nodes_.size());
  std::vector<uint8_t> splits_character(nodes_.size());
  const uint8_t bit = uint8_t(1 << int(kind));
  for (uint32_t i = uint32_t(nodes_.size() - 1); i-- > 0;) {
    Node& node = nodes_[i];
    if (latest_below[i] <= node.depth && !splits_character[i]) node.covered_below |= bit;
    size_t latest = latest_below[i];
    for (uint32_t token = node.first_token; token < nodes_[i + 1].first_token; ++token)
      latest = std::max(latest, tails[token].begin);
    if (latest == 0) node.covered |= bit;
    latest_below[parents[i]] = std::max(latest_below[parents[i]], latest);
    splits_character[parents[i]] |= (node.byte & 0xC0) == 0x80;
  }
}

void TokenIndex::add_text_tokens(TextKind kind, int64_t characters, TokenSet& set) const {
  const TextTokens& tokens = text_tokens_[int(kind)];
  if (characters >= max_token_bytes_) {
    for (size_t i = 0; i < set.words().size(); ++i) set.words()[i] |= tokens.all.words()[i];
    return;
  }
  const uint32_t count = tokens.up_to[size_t(std::max<int64_t>(characters, 0))];
  for (uint32_t i = 0; i < count; ++i) set.add(tokens.ids[i]);
}

std::optional<int32_t> TokenIndex::find_special(std::string_view text) const {
  const auto found = std::find(special_texts_.begin(), special_texts_.end(), text);
  if (found == special_texts_.end()) return std::nullopt;
  return special_ids_[size_t(found - special_texts_.begin())];
}

}  // namespace slip
