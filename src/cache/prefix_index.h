// Which beginnings of texts are remembered: found by their content, forgotten in the order of their
// last use. What is remembered of each is a sequence of the cache that nobody extends any more.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cache/cache.h"

namespace slip {

class PrefixIndex {
 public:
  // What a sequence was computed from. Texts of different salts share nothing. `cuts` are the
  // places up to which it was computed in steps of their own, rising, for backends whose numbers
  // depend on them; empty where they do not.
  struct Text {
    std::string_view salt;
    std::span<const int32_t> tokens;
    std::span<const int64_t> cuts{};
  };

  PrefixIndex();

  // The longest remembered beginning of `text`, of at most `limit` tokens. This is a use of it.
  struct Found {
    SequenceId sequence;
    int64_t length;
  };
  std::optional<Found> find(const Text& text, int64_t limit);

  // False if it is remembered already; that was a use then, and the sequence stays the caller's.
  bool add(const Text& text, SequenceId sequence);
  bool contains(const Text& text);

  // Forgets one and hands its sequence back: this one, or the one not used for longest.
  SequenceId take(SequenceId sequence);
  std::optional<SequenceId> take_oldest();

  int64_t size() const { return int64_t(entries_.size()); }

 private:
  struct Entry {
    uint64_t hash;
    std::string salt;
    std::vector<int32_t> tokens;
    std::vector<int64_t> cuts;
    SequenceId sequence;
  };
  using Entries = std::list<Entry>;  // the one used last is in front

  // Of every beginning of the text, the empty one first.
  std::vector<uint64_t> hashes(const Text& text) const;
  Entries::iterator find_whole(const Text& text, uint64_t hash);
  // Whether the text is remembered.
  bool use(const Text& text, uint64_t hash);
  SequenceId erase(Entries::iterator entry);

  uint64_t key_;  // nobody outside can prepare texts whose hashes collide
  Entries entries_;
  std::unordered_multimap<uint64_t, Entries::iterator> by_hash_;
};

}  // namespace slip
