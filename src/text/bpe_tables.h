// The two hash tables of byte-pair encoding: token -> id, and pair of ids -> merge. Open
// addressing, filled once, then only read, so that threads can share them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slip {

class TokenTable {
 public:
  TokenTable() : slots_(1) {}

  // False if the token is there already.
  bool insert(std::string_view token, int32_t id);
  std::optional<int32_t> find(std::string_view token) const;

  void reserve(size_t tokens);
  size_t longest() const { return longest_; }

 private:
  struct Slot {
    int32_t id = -1;  // -1: free
    uint32_t hash = 0;
    uint32_t length = 0;
    size_t offset = 0;  // in bytes_
  };

  size_t slot_of(std::string_view token, uint32_t hash) const;

  std::vector<Slot> slots_;  // a power of two, at most half full
  std::string bytes_;
  size_t count_ = 0;
  size_t longest_ = 0;
};

struct Merge {
  static constexpr uint32_t kNever = ~uint32_t{0};
  uint32_t rank = kNever;  // lower merges first
  int32_t id = -1;         // of the joined token
};

class MergeTable {
 public:
  MergeTable() : slots_(1) {}

  // A pair that is there already takes the new merge.
  void insert(int32_t left, int32_t right, Merge merge);

  // The merge of two neighbours; its rank is kNever where there is none.
  Merge find(int32_t left, int32_t right) const {
    return slots_[slot_of(key_of(left, right))].merge;
  }

  void reserve(size_t merges);

 private:
  static constexpr uint64_t kFree = ~uint64_t{0};
  struct Slot {
    uint64_t key = kFree;
    Merge merge;
  };

  // Ids are not negative, so no key equals kFree.
  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  }
  size_t slot_of(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    size_t slot = size_t((key ^ key >> 29) * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (slots_[slot].key != key && slots_[slot].key != kFree) slot = (slot + 1) & mask;
    return slot;
  }

  std::vector<Slot> slots_;  // a power of two, at most half full
  size_t count_ = 0;
};

}  // namespace slip
