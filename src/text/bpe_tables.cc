#include "text/bpe_tables.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace slip {
namespace {

// Short keys, read eight bytes at a time. The tables hold no keys from requests, so nobody can
// choose colliding ones.
uint32_t hash_bytes(std::string_view bytes) {
  constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
  uint64_t hash = bytes.size() * kFactor;
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * kFactor;
    hash ^= hash >> 32;
  };
  while (bytes.size() >= 8) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), 8);
    mix(word);
    bytes.remove_prefix(8);
  }
  uint64_t word = 0;
  for (const char byte : bytes) word = word << 8 | static_cast<unsigned char>(byte);
  mix(word);
  return uint32_t(hash);
}

size_t slots_for(size_t entries) { return std::bit_ceil(2 * std::max<size_t>(entries, 1)); }

}  // namespace

size_t TokenTable::slot_of(std::string_view token, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const Slot& entry = slots_[slot];
    if (entry.id < 0) return slot;
    if (entry.hash == hash && entry.length == token.size() &&
        std::memcmp(bytes_.data() + entry.offset, token.data(), token.size()) == 0)
      return slot;
  }
}

void TokenTable::reserve(size_t tokens) {
  if (slots_for(tokens) <= slots_.size()) return;
  const std::vector<Slot> old = std::move(slots_);
  slots_.assign(slots_for(tokens), Slot{});
  for (const Slot& entry : old)
    if (entry.id >= 0)
      slots_[slot_of({bytes_.data() + entry.offset, entry.length}, entry.hash)] = entry;
}

bool TokenTable::insert(std::string_view token, int32_t id) {
  reserve(count_ + 1);
  const uint32_t hash = hash_bytes(token);
  Slot& entry = slots_[slot_of(token, hash)];
  if (entry.id >= 0) return false;
  entry = {.id = id, .hash = hash, .length = uint32_t(token.size()), .offset = bytes_.size()};
  bytes_ += token;
  ++count_;
  longest_ = std::max(longest_, token.size());
  return true;
}

std::optional<int32_t> TokenTable::find(std::string_view token) const {
  const Slot& entry = slots_[slot_of(token, hash_bytes(token))];
  if (entry.id < 0) return std::nullopt;
  return entry.id;
}

void MergeTable::reserve(size_t merges) {
  if (slots_for(merges) <= slots_.size()) return;
  const std::vector<Slot> old = std::move(slots_);
  slots_.assign(slots_for(merges), Slot{});
  for (const Slot& entry : old)
    if (entry.key != kFree) slots_[slot_of(entry.key)] = entry;
}

void MergeTable::insert(int32_t left, int32_t right, Merge merge) {
  reserve(count_ + 1);
  const uint64_t key = key_of(left, right);
  Slot& entry = slots_[slot_of(key)];
  if (entry.key == kFree) ++count_;
  entry = {key, merge};
}

}  // namespace slip
