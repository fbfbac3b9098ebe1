#include "cache/cache.h"

#include <cstring>

namespace slip {
namespace {

int64_t pages_for(int64_t positions) { return (positions + kPageLen - 1) / kPageLen; }

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

const char* name_of(KvType type) {
  switch (type) {
    case KvType::f32: return "f32";
    case KvType::bf16: return "bf16";
  }
  unreachable("KvType");
}

DType dtype_of(KvType type) {
  switch (type) {
    case KvType::f32: return DType::f32;
    case KvType::bf16: return DType::bf16;
  }
  unreachable("KvType");
}

uint64_t CacheCost::bytes(int64_t sequences, int64_t context) const {
  return uint64_t(sequences) * (bytes_per_sequence + uint64_t(pages_for(context)) * bytes_per_page);
}

CacheCost cache_cost(std::span<const CacheSpec> specs, KvType type) {
  CacheCost cost;
  for (const CacheSpec& spec : specs) {
    std::visit(Overloaded{[&](const PagedKvSpec& kv) {
                            cost.bytes_per_page += uint64_t(2 * kPageLen * kv.kv_heads) *
                                                   uint64_t(kv.head_dim) *
                                                   bytes_per_value(dtype_of(type));
                          },
                          [&](const RecurrentSpec& state) {
                            cost.bytes_per_sequence +=
                                sizeof(float) *
                                uint64_t(state.value_heads * state.key_dim * state.value_dim +
                                         state.conv_tail * state.conv_channels);
                          }},
               spec);
  }
  return cost;
}

Cache::Cache(std::span<const CacheSpec> specs, KvType type, const CacheSize& size) {
  const auto tensor = [&](DType dtype, const Shape& shape) {
    buffers_.emplace_back(Device::cpu, size_t(shape.count()) * bytes_per_value(dtype), Pages::huge);
    return buffers_.back().view(dtype, shape);
  };
  for (const CacheSpec& spec : specs) {
    layers_.push_back(std::visit(
        Overloaded{[&](const PagedKvSpec& kv) {
                     const Shape shape{size.pages, kv.kv_heads, kPageLen, kv.head_dim};
                     Layer layer;
                     layer.keys = tensor(dtype_of(type), shape);
                     layer.values = tensor(dtype_of(type), shape);
                     return layer;
                   },
                   [&](const RecurrentSpec& state) {
                     Layer layer;
                     layer.state = tensor(DType::f32, {size.sequences, state.value_heads,
                                                       state.key_dim, state.value_dim});
                     layer.tail =
                         tensor(DType::f32, {size.sequences, state.conv_tail, state.conv_channels});
                     return layer;
                   }},
        spec));
  }
  for (int64_t page = size.pages - 1; page >= 0; --page) free_pages_.push_back(int32_t(page));
  sequences_.resize(size_t(size.sequences));
  for (Sequence& sequence : sequences_) sequence.pages.reserve(size_t(size.pages));
}

Result<SequenceId> Cache::open() {
  for (size_t i = 0; i < sequences_.size(); ++i) {
    if (sequences_[i].open) continue;
    sequences_[i].open = true;
    const SequenceId id{int32_t(i)};
    zero_state(id);
    return id;
  }
  return error("all ", sequences_.size(), " sequences of the cache are in use");
}

void Cache::close(SequenceId id) {
  clear(id);
  sequences_[size_t(id)].open = false;
}

void Cache::clear(SequenceId id) {
  Sequence& sequence = sequences_[size_t(id)];
  check(sequence.open, "cache sequence ", int32_t(id), " is not open");
  free_pages_.insert(free_pages_.end(), sequence.pages.rbegin(), sequence.pages.rend());
  sequence.pages.clear();
  zero_state(id);
}

Status Cache::reserve(SequenceId id, int64_t positions) {
  Sequence& sequence = sequences_[size_t(id)];
  check(sequence.open, "cache sequence ", int32_t(id), " is not open");
  const int64_t missing = pages_for(positions) - int64_t(sequence.pages.size());
  if (missing > int64_t(free_pages_.size()))
    return error("the cache has room for ",
                 (int64_t(sequence.pages.size()) + int64_t(free_pages_.size())) * kPageLen,
                 " positions of this sequence, ", positions, " are needed");
  for (int64_t i = 0; i < missing; ++i) {
    sequence.pages.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
  return {};
}

std::span<const int32_t> Cache::pages(SequenceId id) const { return sequences_[size_t(id)].pages; }

uint64_t Cache::bytes() const {
  uint64_t total = 0;
  for (const Buffer& buffer : buffers_) total += buffer.size();
  return total;
}

void Cache::zero_state(SequenceId id) {
  for (const Layer& layer : layers_) {
    for (const View& view : {layer.state, layer.tail}) {
      if (view.empty()) continue;
      const View slot = view.slice(int64_t(id), 1);
      std::memset(slot.data, 0, slot.bytes());
    }
  }
}

}  // namespace slip
