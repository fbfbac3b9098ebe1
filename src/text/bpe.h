// The "model" of tokenizer.json: byte-pair encoding. Joins the neighbours whose merge has the
// lowest rank, leftmost first, until no two neighbours have a merge.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/bpe_tables.h"
#include "text/merge_queue.h"

namespace slip {

// What one call of Bpe::encode needs besides the model; reused from piece to piece.
struct BpeScratch {
  struct Symbol {
    int32_t id;
    int32_t previous = -1;  // -1 at the start
    int32_t next = -1;      // -1 at the end
    Merge merge = {};       // with the next symbol
  };
  std::vector<Symbol> symbols;
  MergeQueue queue;
};

// A token's text as tokenizer.json spells it, by id; a view of the JSON. Ids may have gaps.
using TokenContents = std::vector<std::optional<std::string_view>>;

class Bpe {
 public:
  // Fills `contents` too. With `byte_level`, the vocabulary spells its tokens with the byte-level
  // map, and they are kept as the bytes they stand for.
  static Result<Bpe> read(const Json& model, bool byte_level, TokenContents& contents);

  // Appends the ids of a piece. What no token covers becomes the unknown token, or vanishes where
  // the model has none, as in Hugging Face's tokenizers.
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<int32_t>& ids) const;

  // Id of a token as tokenizer.json spells it.
  std::optional<int32_t> find(std::string_view content) const;

 private:
  Status read_vocabulary(const JsonObject& vocabulary, TokenContents& contents);
  Status read_options(const JsonObject& model);
  Status read_merges(const Json& merges);
  Status add_merge(std::string_view left, std::string_view right);
  void find_single_bytes();

  void split_into_symbols(std::string_view piece, std::vector<BpeScratch::Symbol>& symbols) const;
  bool append_fallback(std::string_view character, std::vector<BpeScratch::Symbol>& symbols) const;
  void merge_short(std::vector<BpeScratch::Symbol>& symbols) const;
  void merge_long(BpeScratch& scratch) const;

  bool byte_level_ = false;
  bool ignore_merges_ = false;
  bool byte_fallback_ = false;
  bool fuse_unknown_ = false;
  std::optional<int32_t> unknown_;

  TokenTable tokens_;        // by bytes
  TokenTable other_tokens_;  // byte-level only: contents that the byte-level map cannot spell
  MergeTable merges_;
  uint32_t merge_count_ = 0;

  // Ids of single bytes, -1 for none. Not byte-level: of ASCII characters only.
  std::array<int32_t, 256> byte_ids_{};
  std::array<int32_t, 256> fallback_ids_{};  // of "<0x00>" to "<0xFF>"

  // By id: whether the token's own bytes are known to encode to just that token, found out on first
  // use. Most words are one token, and this makes them one look-up. Relaxed order will do, since
  // every thread finds the same.
  std::unique_ptr<std::atomic<bool>[]> is_whole_;
};

}  // namespace slip
