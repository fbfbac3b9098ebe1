#include "text/bpe.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "text/byte_level.h"
#include "text/utf8.h"

namespace slip {
namespace {

using Symbol = BpeScratch::Symbol;

// Up to here, looking at every pair for each merge is cheaper than keeping a queue.
constexpr size_t kShortPiece = 48;

}  // namespace

std::optional<int32_t> Bpe::find(std::string_view content) const {
  if (!byte_level_) return tokens_.find(content);
  std::string bytes;
  if (is_valid_utf8(content) && append_byte_level(content, bytes)) return tokens_.find(bytes);
  return other_tokens_.find(content);
}

void Bpe::encode(std::string_view piece, BpeScratch& scratch, std::vector<int32_t>& ids) const {
  std::optional<int32_t> whole;
  if (piece.size() <= tokens_.longest()) whole = tokens_.find(piece);
  if (whole && (ignore_merges_ || is_whole_[size_t(*whole)].load(std::memory_order_relaxed))) {
    ids.push_back(*whole);
    return;
  }
  const size_t before = ids.size();
  split_into_symbols(piece, scratch.symbols);
  if (scratch.symbols.size() <= kShortPiece) {
    merge_short(scratch.symbols);
    for (const Symbol& symbol : scratch.symbols) ids.push_back(symbol.id);
  } else {
    merge_long(scratch);
    for (int32_t i = 0; i >= 0; i = scratch.symbols[size_t(i)].next)
      ids.push_back(scratch.symbols[size_t(i)].id);
  }
  if (whole && ids.size() == before + 1 && ids.back() == *whole)
    is_whole_[size_t(*whole)].store(true, std::memory_order_relaxed);
}

void Bpe::split_into_symbols(std::string_view piece, std::vector<Symbol>& symbols) const {
  check(piece.size() <= size_t(std::numeric_limits<int32_t>::max()), "a piece of ", piece.size(),
        " bytes is more than symbols can number");
  symbols.clear();
  const auto append = [&symbols](int32_t id) { symbols.push_back({.id = id}); };
  bool unknown_waits = false;
  for (size_t pos = 0, length; pos < piece.size(); pos += length) {
    const auto byte = static_cast<unsigned char>(piece[pos]);
    length = byte_level_ ? 1 : decode_valid_utf8(piece.data() + pos).length;
    const std::string_view character = piece.substr(pos, length);
    const int32_t id = length == 1 ? byte_ids_[byte] : tokens_.find(character).value_or(-1);
    if (id >= 0) {
      if (unknown_waits) append(*unknown_);
      unknown_waits = false;
      append(id);
    } else if (byte_fallback_ && append_fallback(character, symbols)) {
      continue;
    } else if (unknown_) {
      if (unknown_waits && !fuse_unknown_) append(*unknown_);
      unknown_waits = true;
    }
  }
  if (unknown_waits) append(*unknown_);
}

bool Bpe::append_fallback(std::string_view character, std::vector<Symbol>& symbols) const {
  const auto id_of = [this](char byte) { return fallback_ids_[static_cast<unsigned char>(byte)]; };
  if (!std::all_of(character.begin(), character.end(), [&](char b) { return id_of(b) >= 0; }))
    return false;
  for (const char byte : character) symbols.push_back({.id = id_of(byte)});
  return true;
}

void Bpe::merge_short(std::vector<Symbol>& symbols) const {
  const auto look_up = [&](size_t i) {
    symbols[i].merge =
        i + 1 < symbols.size() ? merges_.find(symbols[i].id, symbols[i + 1].id) : Merge{};
  };
  for (size_t i = 0; i < symbols.size(); ++i) look_up(i);
  while (symbols.size() > 1) {
    const auto best = std::min_element(
        symbols.begin(), symbols.end(),
        [](const Symbol& a, const Symbol& b) { return a.merge.rank < b.merge.rank; });
    if (best->merge.rank == Merge::kNever) return;
    best->id = best->merge.id;
    symbols.erase(best + 1);
    const size_t at = size_t(best - symbols.begin());
    look_up(at);
    if (at > 0) look_up(at - 1);
  }
}

// A pair that a merge beside it has broken stays in the queue; its symbol then has another rank.
void Bpe::merge_long(BpeScratch& scratch) const {
  std::vector<Symbol>& symbols = scratch.symbols;
  MergeQueue& queue = scratch.queue;
  const auto push = [&](int32_t i) {
    Symbol& symbol = symbols[size_t(i)];
    symbol.merge =
        symbol.next < 0 ? Merge{} : merges_.find(symbol.id, symbols[size_t(symbol.next)].id);
    if (symbol.merge.rank != Merge::kNever) queue.push({symbol.merge.rank, i});
  };

  queue.begin(merge_count_);
  const int32_t count = int32_t(symbols.size());
  for (int32_t i = 0; i < count; ++i) {
    symbols[size_t(i)].previous = i - 1;
    symbols[size_t(i)].next = i + 1 < count ? i + 1 : -1;
    push(i);
  }
  while (!queue.empty()) {
    const auto [rank, at] = queue.pop();
    Symbol& symbol = symbols[size_t(at)];
    if (symbol.merge.rank != rank) continue;
    Symbol& absorbed = symbols[size_t(symbol.next)];
    symbol.id = symbol.merge.id;
    symbol.next = absorbed.next;
    absorbed.merge = Merge{};
    if (symbol.next >= 0) symbols[size_t(symbol.next)].previous = at;
    push(at);
    if (symbol.previous >= 0) push(symbol.previous);
  }
}

}  // namespace slip
