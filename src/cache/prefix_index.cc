#include "cache/prefix_index.h"

#include <algorithm>
#include <random>

#include "base/split_mix.h"

namespace slip {
namespace {

// One round of splitmix64 over what came before and what comes now. Entries are compared token by
// token, so that a collision costs time and nothing else.
uint64_t chain(uint64_t before, uint64_t now) { return split_mix((before ^ now) + kSplitMixStep); }

constexpr uint64_t kCut = ~uint64_t{0};  // no token

uint64_t random_key() {
  std::random_device device;
  return uint64_t(device()) << 32 | device();
}

}  // namespace

PrefixIndex::PrefixIndex() : key_(random_key()) {}

std::vector<uint64_t> PrefixIndex::hashes(const Text& text) const {
  uint64_t hash = key_;
  for (const char letter : text.salt) hash = chain(hash, uint8_t(letter));
  std::vector<uint64_t> all{hash};
  all.reserve(text.tokens.size() + 1);
  auto cut = text.cuts.begin();
  for (size_t i = 0; i < text.tokens.size(); ++i) {
    hash = chain(hash, uint64_t(text.tokens[i]));
    if (cut != text.cuts.end() && *cut == int64_t(i) + 1) {
      hash = chain(hash, kCut);
      ++cut;
    }
    all.push_back(hash);
  }
  return all;
}

PrefixIndex::Entries::iterator PrefixIndex::find_whole(const Text& text, uint64_t hash) {
  const auto [begin, end] = by_hash_.equal_range(hash);
  for (auto each = begin; each != end; ++each) {
    const Entry& entry = *each->second;
    if (entry.salt == text.salt && std::ranges::equal(entry.tokens, text.tokens) &&
        std::ranges::equal(entry.cuts, text.cuts))
      return each->second;
  }
  return entries_.end();
}

std::optional<PrefixIndex::Found> PrefixIndex::find(const Text& text, int64_t limit) {
  const std::vector<uint64_t> all = hashes(text);
  const bool anywhere = text.cuts.empty();
  for (int64_t length = std::min(limit, int64_t(text.tokens.size())); length > 0; --length) {
    if (!by_hash_.contains(all[size_t(length)])) continue;
    const auto cuts_end = std::ranges::upper_bound(text.cuts, length);
    const Text beginning{text.salt, text.tokens.first(size_t(length)),
                         text.cuts.first(size_t(cuts_end - text.cuts.begin()))};
    if (!anywhere && (beginning.cuts.empty() || beginning.cuts.back() != length)) continue;
    const auto entry = find_whole(beginning, all[size_t(length)]);
    if (entry == entries_.end()) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return Found{entry->sequence, length};
  }
  return std::nullopt;
}

bool PrefixIndex::use(const Text& text, uint64_t hash) {
  const auto entry = find_whole(text, hash);
  if (entry == entries_.end()) return false;
  entries_.splice(entries_.begin(), entries_, entry);
  return true;
}

bool PrefixIndex::contains(const Text& text) { return use(text, hashes(text).back()); }

bool PrefixIndex::add(const Text& text, SequenceId sequence) {
  const uint64_t hash = hashes(text).back();
  if (use(text, hash)) return false;
  entries_.push_front({.hash = hash,
                       .salt = std::string(text.salt),
                       .tokens = {text.tokens.begin(), text.tokens.end()},
                       .cuts = {text.cuts.begin(), text.cuts.end()},
                       .sequence = sequence});
  by_hash_.emplace(hash, entries_.begin());
  return true;
}

SequenceId PrefixIndex::erase(Entries::iterator entry) {
  const SequenceId sequence = entry->sequence;
  const auto [begin, end] = by_hash_.equal_range(entry->hash);
  by_hash_.erase(std::find_if(begin, end, [&](const auto& each) { return each.second == entry; }));
  entries_.erase(entry);
  return sequence;
}

SequenceId PrefixIndex::take(SequenceId sequence) {
  const auto entry = std::ranges::find(entries_, sequence, &Entry::sequence);
  check(entry != entries_.end(), "sequence ", int32_t(sequence), " is not remembered");
  return erase(entry);
}

std::optional<SequenceId> PrefixIndex::take_oldest() {
  if (entries_.empty()) return std::nullopt;
  return erase(std::prev(entries_.end()));
}

}  // namespace slip
