// The memory of sequences: pages of keys and values, slots of recurrent state. All of it is
// allocated once; sequences take and return pieces.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "cache/cache_spec.h"
#include "kernels/args.h"
#include "tensor/buffer.h"

namespace slip {

// Positions per page. Attention walks a context page by page, so that partial sums are split at
// fixed absolute positions.
inline constexpr int64_t kPageLen = 64;
inline int64_t pages_for(int64_t positions) { return (positions + kPageLen - 1) / kPageLen; }

// How things are kept, whatever the number of sequences.
struct CacheFormat {
  KvRecipe kv;
  int64_t record_rows = 0;  // rows that a step may compute before they are accepted; 0: none
  int64_t step_rows = 0;    // rows that a step may add to a sequence; windows have room for them
};

// How windows are kept: they are short, and stay in 16 bits where a coded recipe saves memory
// elsewhere.
KvRecipe window_recipe(const KvRecipe& kv);

// Bytes of keys and values per page, and of everything else per sequence, over all layers.
struct CacheCost {
  uint64_t bytes_per_page = 0;
  uint64_t bytes_per_sequence = 0;
};
CacheCost cache_cost(std::span<const CacheSpec> specs, const CacheFormat& format);

// Whether these layers can be kept this way, or why not.
Status check_format(std::span<const CacheSpec> specs, const CacheFormat& format);

struct CacheSize {
  int64_t sequences = 1;  // state slots
  int64_t pages = 0;      // shared by all sequences
};

enum class SequenceId : int32_t {};

class Cache {
 public:
  Cache(std::span<const CacheSpec> specs, const CacheFormat& format, const CacheSize& size,
        Memory& memory = host_memory());

  // A fresh sequence: zero state, no positions. Fails when all slots are taken.
  Result<SequenceId> open();
  void close(SequenceId id);

  // A sequence that goes on from where `from` stands now: full pages are shared, the rest is
  // copied. Fails, changing nothing, without a free slot or page. The last `unsettled` positions
  // are those that some layer has not written for good yet; their pages are not shared.
  Result<SequenceId> fork(SequenceId from, int64_t unsettled = 0);

  // Forgets everything, as if just opened.
  void clear(SequenceId id);

  // Positions that are part of the sequence.
  int64_t length(SequenceId id) const { return sequences_[size_t(id)].length; }

  // Makes room for positions [0, positions). Fails, changing nothing, when pages run out.
  Status reserve(SequenceId id, int64_t positions);

  // Returns pages that hold no position.
  void trim(SequenceId id);

  // The next `rows` positions, for one step. Tentative rows may be rejected by commit().
  enum class Rows : uint8_t { certain, tentative };
  Result<Span> extend(SequenceId id, int64_t rows, Rows kind);

  // After that step: the first `rows` of the extension are part of the sequence, the others never
  // happened. Nothing is copied: keys and values of the others will be overwritten, and recurrent
  // state is advanced by the accepted rows when the next step loads it.
  void commit(SequenceId id, int64_t rows);

  std::span<const int32_t> pages(SequenceId id) const;
  static int32_t state_slot(SequenceId id) { return int32_t(id); }

  // Layer views; which of them a layer has depends on its spec.
  struct Layer {
    KvPages kv;
    View state;          // [slots, value_heads, key_dim, value_dim]
    View conv_tail;      // [slots, conv_tail + record_rows, conv_channels]
    DeltaRecord record;  // with record_rows > 0
  };
  const Layer& layer(size_t index) const { return layers_[index]; }

  // Whether some layer holds keys or values as codes.
  bool coded() const;

  int64_t pages() const { return int64_t(page_users_.size()); }
  int64_t free_pages() const { return int64_t(free_pages_.size()); }
  int64_t sequences() const { return int64_t(sequences_.size()); }

 private:
  struct Sequence {
    bool open = false;
    int64_t length = 0;
    int64_t extension = 0;  // rows between extend() and commit()
    bool tentative = false;
    int32_t replay = 0;  // accepted rows that the recurrent state does not hold yet
    int32_t record_side = 0;
    std::vector<int32_t> pages;
  };

  Layer make_layer(const PagedKvSpec& kv, const CacheSize& size);
  Layer make_layer(const WindowKvSpec& kv, const CacheSize& size);
  Layer make_layer(const SharedKvSpec& kv, const CacheSize& size);
  Layer make_layer(const RecurrentSpec& state, const CacheSize& size);
  View make_view(DType dtype, const Shape& shape);
  Sequence& at(SequenceId id);
  // A slot with no positions, whose state is whatever the last sequence left.
  Result<SequenceId> take_slot();
  void clear_state(SequenceId id);
  // All but the first `kept`.
  void release_pages(Sequence& sequence, size_t kept);
  void forget_positions(Sequence& sequence);
  // Calls body(layer) for every layer that has something of its own.
  template <class Body>
  void for_each_owner(const Body& body) const;
  // Calls body(view, first, count) for every part of the sequence's slot.
  template <class Body>
  void for_each_slot(SequenceId id, const Body& body) const;

  CacheFormat format_;
  Memory& memory_;
  std::vector<Buffer> buffers_;
  std::vector<Layer> layers_;
  std::vector<bool> shares_;  // by layer: its views are another's
  bool has_windows_ = false;
  std::vector<int32_t> free_pages_;
  std::vector<int32_t> page_users_;  // sequences that hold each page
  std::vector<Sequence> sequences_;
};

}  // namespace slip
