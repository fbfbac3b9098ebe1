// The memory of sequences: pages of keys and values, slots of recurrent state. All of it is
// allocated once; sequences take and return pieces.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "cache/cache_spec.h"
#include "tensor/buffer.h"

namespace slip {

// Positions per page. Attention walks a context page by page, so that partial sums are split at
// fixed absolute positions.
inline constexpr int64_t kPageLen = 64;

enum class KvType : uint8_t { f32, bf16 };

const char* name_of(KvType type);
DType dtype_of(KvType type);

// Bytes of keys and values per position, and of recurrent state per sequence, over all layers.
struct CacheCost {
  uint64_t bytes_per_page = 0;
  uint64_t bytes_per_sequence = 0;

  uint64_t bytes(int64_t sequences, int64_t context) const;
};
CacheCost cache_cost(std::span<const CacheSpec> specs, KvType type);

struct CacheSize {
  int64_t sequences = 1;  // state slots
  int64_t pages = 0;      // shared by all sequences
};

enum class SequenceId : int32_t {};

class Cache {
 public:
  Cache(std::span<const CacheSpec> specs, KvType type, const CacheSize& size);

  // A fresh sequence: zero state, no positions. Fails when all slots are taken.
  Result<SequenceId> open();
  void close(SequenceId id);

  // Forgets everything, as if just opened.
  void clear(SequenceId id);

  // Makes room for positions [0, positions). Fails, changing nothing, when pages run out.
  Status reserve(SequenceId id, int64_t positions);

  std::span<const int32_t> pages(SequenceId id) const;
  static int32_t state_slot(SequenceId id) { return int32_t(id); }

  // Layer views; which of them a layer has depends on its spec.
  struct Layer {
    View keys;    // [pages, kv_heads, kPageLen, head_dim]
    View values;  // [pages, kv_heads, kPageLen, head_dim]
    View state;   // [slots, value_heads, key_dim, value_dim]
    View tail;    // [slots, conv_tail, conv_channels]
  };
  const Layer& layer(size_t index) const { return layers_[index]; }

  uint64_t bytes() const;
  int64_t free_pages() const { return int64_t(free_pages_.size()); }

 private:
  struct Sequence {
    bool open = false;
    std::vector<int32_t> pages;
  };

  void zero_state(SequenceId id);

  std::vector<Buffer> buffers_;
  std::vector<Layer> layers_;
  std::vector<int32_t> free_pages_;
  std::vector<Sequence> sequences_;
};

}  // namespace slip
