// The tokens of a vocabulary, ordered by their bytes, so that all tokens that go on in a certain
// way are found together. Made once per tokenizer and shared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/byte_set.h"
#include "grammar/constraint.h"
#include "text/output_format.h"
#include "text/tokenizer.h"

namespace slip {

// Texts that long stretches of an answer are made of. Which tokens they allow is known beforehand.
enum class TextKind : uint8_t {
  json_string,  // characters that stand for themselves in a JSON string and that '.' matches
  no_tag,       // characters other than '<'
};
inline constexpr int kTextKinds = 2;

// Immutable; one object may serve many threads.
class TokenIndex {
 public:
  // Ids from tokenizer.vocab_size() on, which the logits of a model may have, are never allowed.
  static std::shared_ptr<const TokenIndex> make(const Tokenizer& tokenizer);

  // One place in the tree of all tokens' bytes. Nodes lie in depth-first order: the first child
  // follows its parent, and the subtree ends where the next sibling is.
  struct Node {
    uint32_t subtree_end;
    uint32_t first_token;  // into the ordered ids; those of the subtree lie together, its own first
    uint16_t depth;        // bytes up to and with this one
    uint8_t byte;
    uint8_t covered : 4;        // bit k: all tokens of the subtree are wholly of TextKind k
    uint8_t covered_below : 4;  // and the same of what they have behind this byte
  };
  // The first is the root, the last only ends the others.
  std::span<const Node> nodes() const { return nodes_; }
  // The tokens that end at a node, and those of its whole subtree.
  std::span<const int32_t> ids_at(uint32_t node) const { return ids_between(node, node + 1); }
  std::span<const int32_t> ids_below(uint32_t node) const {
    return ids_between(node, nodes_[node].subtree_end);
  }

  // Adds all tokens of at most `characters` whole characters of the kind.
  void add_text_tokens(TextKind kind, int64_t characters, TokenSet& set) const;

  int32_t vocabulary() const { return int32_t(spans_.size()); }
  int max_token_bytes() const { return max_token_bytes_; }
  // Bytes that are a token by themselves; what needs others might never be finished.
  const ByteSet& single_bytes() const { return single_bytes_; }

  const OutputFormat& output_format() const { return *output_format_; }

  // Empty for special tokens and for ids without one.
  std::string_view bytes(int32_t id) const {
    if (id < 0 || id >= vocabulary()) return {};
    const Span& span = spans_[size_t(id)];
    return std::string_view(bytes_).substr(span.begin, span.length);
  }
  // In ascending order.
  const std::vector<int32_t>& special_ids() const { return special_ids_; }
  bool is_special(int32_t id) const {
    return std::binary_search(special_ids_.begin(), special_ids_.end(), id);
  }
  // The special token that is spelt so.
  std::optional<int32_t> find_special(std::string_view text) const;

 private:
  struct Span {
    uint32_t begin = 0;
    uint32_t length = 0;
  };
  struct TextTokens {
    std::vector<int32_t> ids;     // by number of characters
    std::vector<uint32_t> up_to;  // [characters]: how many of the ids have at most as many
    TokenSet all;
  };

  TokenIndex() = default;
  std::span<const int32_t> ids_between(uint32_t node, uint32_t end) const {
    const uint32_t first = nodes_[node].first_token;
    return std::span(ordered_ids_).subspan(first, nodes_[end].first_token - first);
  }
  void collect(const Tokenizer& tokenizer);
  void build_tree();
  void find_text_tokens(TextKind kind);

  const OutputFormat* output_format_ = &kQwenOutput;
  std::string bytes_;
  std::vector<Span> spans_;  // [ids]
  std::vector<int32_t> special_ids_;
  std::vector<std::string> special_texts_;  // of each of them
  std::vector<int32_t> ordered_ids_;
  std::vector<Node> nodes_;
  TextTokens text_tokens_[kTextKinds];
  ByteSet single_bytes_;
  int max_token_bytes_ = 0;
};

}  // namespace slip
