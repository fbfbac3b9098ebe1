#include "cache/cache.h"

#include <algorithm>

#include "quant/turboquant.h"

namespace slip {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// Positions that a coded recipe keeps uncoded, per sequence: the page being filled, and another for
// rows that may be rejected.
constexpr int64_t kTailLen = 2 * kPageLen;

uint64_t tail_bytes(const PagedKvSpec& kv) {
  return uint64_t(2 * kv.kv_heads * kTailLen * kv.head_dim) * bytes_per_value(DType::bf16);
}

// Pages of a ring that always holds what the rows of a step see, and loses nothing that the
// sequence may fall back to when they are rejected.
int64_t ring_pages(const WindowKvSpec& kv, const CacheFormat& format) {
  const int64_t positions =
      kv.window + std::max<int64_t>({1, format.step_rows, format.record_rows});
  return (positions - 2) / kPageLen + 2;
}

uint64_t state_values(const RecurrentSpec& state, int64_t record_rows) {
  const int64_t record_row =
      state.key_heads * state.key_dim + state.value_heads * state.value_dim + state.value_heads;
  return uint64_t(state.value_heads * state.key_dim * state.value_dim +
                  (state.conv_tail + record_rows) * state.conv_channels +
                  2 * record_rows * record_row);
}

}  // namespace

KvRecipe window_recipe(const KvRecipe& kv) {
  return kv.coded() ? KvRecipe{KvCodec::bf16, KvCodec::bf16} : kv;
}

CacheCost cache_cost(std::span<const CacheSpec> specs, const CacheFormat& format) {
  CacheCost cost;
  for (const CacheSpec& spec : specs) {
    std::visit(Overloaded{[&](const PagedKvSpec& kv) {
                            cost.bytes_per_page += uint64_t(kPageLen * kv.kv_heads) *
                                                   bytes_per_position(format.kv, kv.head_dim);
                            if (format.kv.coded()) cost.bytes_per_sequence += tail_bytes(kv);
                          },
                          [&](const WindowKvSpec& kv) {
                            cost.bytes_per_sequence +=
                                uint64_t(ring_pages(kv, format) * kPageLen * kv.kv_heads) *
                                bytes_per_position(window_recipe(format.kv), kv.head_dim);
                          },
                          [](const SharedKvSpec&) {},
                          [&](const RecurrentSpec& state) {
                            cost.bytes_per_sequence +=
                                sizeof(float) * state_values(state, format.record_rows);
                          }},
               spec);
  }
  return cost;
}

Status check_format(std::span<const CacheSpec> specs, const CacheFormat& format) {
  check(format.record_rows <= kPageLen, "record_rows ", format.record_rows);
  if (!format.kv.coded()) return {};
  for (const CacheSpec& spec : specs) {
    const auto* kv = std::get_if<PagedKvSpec>(&spec);
    if (kv && !turbo_dim_ok(kv->head_dim))
      return error("the cache recipe ", name_of(format.kv),
                   " needs heads whose size is a power of two up to ", kMaxTurboDim,
                   ", this model's have ", kv->head_dim, "; take bf16 or fp8");
  }
  return {};
}

Cache::Cache(std::span<const CacheSpec> specs, const CacheFormat& format, const CacheSize& size,
             Memory& memory)
    : format_(format), memory_(memory) {
  const Status possible = check_format(specs, format);
  check(possible.ok(), possible.ok() ? "" : possible.failure().message);
  for (const CacheSpec& spec : specs) {
    layers_.push_back(std::visit([&](const auto& each) { return make_layer(each, size); }, spec));
    shares_.push_back(std::holds_alternative<SharedKvSpec>(spec));
    has_windows_ |= std::holds_alternative<WindowKvSpec>(spec);
  }
  for (int64_t page = size.pages - 1; page >= 0; --page) free_pages_.push_back(int32_t(page));
  page_users_.resize(size_t(size.pages));
  sequences_.resize(size_t(size.sequences));
  for (Sequence& sequence : sequences_) sequence.pages.reserve(size_t(size.pages));
}

View Cache::make_view(DType dtype, const Shape& shape) {
  // Huge pages suit long streams; records and tails of a few kilobytes would waste theirs.
  constexpr size_t kLong = size_t{4} << 20;
  const size_t bytes = size_t(shape.count()) * bytes_per_value(dtype);
  buffers_.emplace_back(memory_, bytes, bytes >= kLong ? Pages::huge : Pages::normal);
  return buffers_.back().view(dtype, shape);
}

Cache::Layer Cache::make_layer(const PagedKvSpec& kv, const CacheSize& size) {
  Layer layer;
  layer.kv.recipe = format_.kv;
  if (!format_.kv.coded()) {
    const Shape shape{size.pages, kv.kv_heads, kPageLen, kv.head_dim};
    layer.kv.keys = make_view(plain_dtype(format_.kv), shape);
    layer.kv.values = make_view(plain_dtype(format_.kv), shape);
    return layer;
  }
  const auto codes = [&](KvCodec codec) {
    return make_view(DType::u8,
                     {size.pages, kv.kv_heads, kPageLen * kv.head_dim * bits_of(codec) / 8});
  };
  const Shape scales{size.pages, kv.kv_heads, kPageLen};
  const Shape tail{size.sequences, kv.kv_heads, kTailLen, kv.head_dim};
  layer.kv.keys = codes(format_.kv.keys);
  layer.kv.values = codes(format_.kv.values);
  layer.kv.key_scales = make_view(DType::bf16, scales);
  layer.kv.value_scales = make_view(DType::bf16, scales);
  layer.kv.key_tail = make_view(DType::bf16, tail);
  layer.kv.value_tail = make_view(DType::bf16, tail);
  return layer;
}

Cache::Layer Cache::make_layer(const WindowKvSpec& kv, const CacheSize& size) {
  Layer layer;
  layer.kv.recipe = window_recipe(format_.kv);
  layer.kv.ring_pages = ring_pages(kv, format_);
  const Shape shape{size.sequences * layer.kv.ring_pages, kv.kv_heads, kPageLen, kv.head_dim};
  layer.kv.keys = make_view(plain_dtype(layer.kv.recipe), shape);
  layer.kv.values = make_view(plain_dtype(layer.kv.recipe), shape);
  return layer;
}

Cache::Layer Cache::make_layer(const SharedKvSpec& kv, const CacheSize&) {
  check(kv.layer >= 0 && kv.layer < int64_t(layers_.size()), "a layer shares layer ", kv.layer);
  return layers_[size_t(kv.layer)];
}

Cache::Layer Cache::make_layer(const RecurrentSpec& state, const CacheSize& size) {
  const int64_t record_rows = format_.record_rows;
  Layer layer;
  layer.state =
      make_view(DType::f32, {size.sequences, state.value_heads, state.key_dim, state.value_dim});
  layer.conv_tail =
      make_view(DType::f32, {size.sequences, state.conv_tail + record_rows, state.conv_channels});
  if (record_rows == 0) return layer;
  const int64_t sides = 2 * size.sequences;
  layer.record.keys = make_view(DType::f32, {sides, record_rows, state.key_heads, state.key_dim});
  layer.record.deltas =
      make_view(DType::f32, {sides, record_rows, state.value_heads, state.value_dim});
  layer.record.decays = make_view(DType::f32, {sides, record_rows, state.value_heads});
  return layer;
}

Cache::Sequence& Cache::at(SequenceId id) {
  Sequence& sequence = sequences_[size_t(id)];
  check(sequence.open, "cache sequence ", int32_t(id), " is not open");
  return sequence;
}

template <class Body>
void Cache::for_each_owner(const Body& body) const {
  for (size_t i = 0; i < layers_.size(); ++i)
    if (!shares_[i]) body(layers_[i]);
}

template <class Body>
void Cache::for_each_slot(SequenceId id, const Body& body) const {
  const auto slot = int64_t(id);
  for_each_owner([&](const Layer& layer) {
    for (const View& view : {layer.state, layer.conv_tail, layer.kv.key_tail, layer.kv.value_tail})
      if (!view.empty()) body(view, slot, int64_t{1});
    for (const View& view : {layer.record.keys, layer.record.deltas, layer.record.decays})
      if (!view.empty()) body(view, 2 * slot, int64_t{2});
    if (const int64_t ring = layer.kv.ring_pages; ring > 0)
      for (const View& view : {layer.kv.keys, layer.kv.values}) body(view, ring * slot, ring);
  });
}

Result<SequenceId> Cache::take_slot() {
  for (size_t i = 0; i < sequences_.size(); ++i) {
    if (sequences_[i].open) continue;
    sequences_[i].open = true;
    return SequenceId{int32_t(i)};
  }
  return error("all ", sequences_.size(), " sequences of the cache are in use");
}

Result<SequenceId> Cache::open() {
  SLIP_TRY(const SequenceId id, take_slot());
  clear_state(id);
  return id;
}

void Cache::close(SequenceId id) {
  forget_positions(at(id));
  at(id).open = false;
}

void Cache::release_pages(Sequence& sequence, size_t kept) {
  while (sequence.pages.size() > kept) {
    const int32_t page = sequence.pages.back();
    if (--page_users_[size_t(page)] == 0) free_pages_.push_back(page);
    sequence.pages.pop_back();
  }
}

void Cache::trim(SequenceId id) {
  Sequence& sequence = at(id);
  check(sequence.extension == 0, "trim() between extend() and commit()");
  release_pages(sequence, size_t(pages_for(sequence.length)));
}

void Cache::forget_positions(Sequence& sequence) {
  release_pages(sequence, 0);
  std::vector<int32_t> pages = std::move(sequence.pages);  // keeps what it has reserved
  sequence = Sequence{.open = true, .pages = std::move(pages)};
}

void Cache::clear(SequenceId id) {
  forget_positions(at(id));
  clear_state(id);
}

// A record is written before it is read; state and convolution tail start from zero.
void Cache::clear_state(SequenceId id) {
  for (const Layer& layer : layers_) {
    for (const View& view : {layer.state, layer.conv_tail}) {
      if (view.empty()) continue;
      const View slot = view.slice(int64_t(id), 1);
      memory_.clear(slot.data, slot.bytes());
    }
  }
}

Result<SequenceId> Cache::fork(SequenceId from, int64_t unsettled) {
  check(at(from).extension == 0, "fork() between extend() and commit()");
  SLIP_TRY(const SequenceId to, take_slot());  // all of its state is copied
  const Sequence& source = at(from);
  Sequence& copy = at(to);
  // These pages will never change.
  const int64_t full = std::max<int64_t>(0, source.length - unsettled) / kPageLen;
  for (int64_t i = 0; i < full; ++i) {
    copy.pages.push_back(source.pages[size_t(i)]);
    ++page_users_[size_t(copy.pages.back())];
  }
  if (Status room = reserve(to, source.length); !room.ok()) {
    close(to);
    return room.failure();
  }
  copy.length = source.length;
  copy.replay = source.replay;
  copy.record_side = source.record_side;
  for_each_slot(from, [&](const View& view, int64_t first, int64_t count) {
    const View begin = view.slice(first, count);
    memory_.copy(view.slice(first + count * (int64_t(to) - int64_t(from)), count).data, begin.data,
                 begin.bytes());
  });
  for_each_owner([&](const Layer& layer) {
    if (layer.kv.ring_pages > 0) return;
    for (const View& view :
         {layer.kv.keys, layer.kv.values, layer.kv.key_scales, layer.kv.value_scales}) {
      if (view.empty()) continue;
      for (size_t i = size_t(full); i < copy.pages.size(); ++i) {
        const View page = view.slice(source.pages[i], 1);
        memory_.copy(view.slice(copy.pages[i], 1).data, page.data, page.bytes());
      }
    }
  });
  return to;
}

Status Cache::reserve(SequenceId id, int64_t positions) {
  Sequence& sequence = at(id);
  const int64_t missing = pages_for(positions) - int64_t(sequence.pages.size());
  if (missing > int64_t(free_pages_.size()))
    return error("the cache has room for ",
                 (int64_t(sequence.pages.size()) + int64_t(free_pages_.size())) * kPageLen,
                 " positions of this sequence, ", positions, " are needed");
  for (int64_t i = 0; i < missing; ++i) {
    sequence.pages.push_back(free_pages_.back());
    page_users_[size_t(sequence.pages.back())] = 1;
    free_pages_.pop_back();
  }
  return {};
}

Result<Span> Cache::extend(SequenceId id, int64_t rows, Rows kind) {
  Sequence& sequence = at(id);
  check(sequence.extension == 0, "extend() before the last one was committed");
  check(kind == Rows::certain || rows <= format_.record_rows, rows,
        " tentative rows, the cache records ", format_.record_rows);
  check(!has_windows_ || rows <= std::max(format_.step_rows, format_.record_rows), rows,
        " rows in a step, windows have room for ", format_.step_rows);
  SLIP_TRY_STATUS(reserve(id, sequence.length + rows));
  sequence.extension = rows;
  sequence.tentative = kind == Rows::tentative;
  return Span{.first_row = 0,
              .rows = rows,
              .start = sequence.length,
              .state_slot = state_slot(id),
              .pages = sequence.pages,
              .record = sequence.tentative,
              .replay = sequence.replay,
              .record_side = sequence.record_side};
}

void Cache::commit(SequenceId id, int64_t rows) {
  Sequence& sequence = at(id);
  check(rows >= 0 && rows <= sequence.extension, "commit of ", rows, " rows of ",
        sequence.extension);
  check(sequence.tentative || rows == sequence.extension, "certain rows cannot be rejected");
  sequence.length += rows;
  sequence.extension = 0;
  sequence.replay = sequence.tentative ? int32_t(rows) : 0;
  if (sequence.tentative) sequence.record_side = 1 - sequence.record_side;
}

std::span<const int32_t> Cache::pages(SequenceId id) const { return sequences_[size_t(id)].pages; }

bool Cache::coded() const {
  return std::ranges::any_of(layers_, [](const Layer& layer) { return layer.kv.recipe.coded(); });
}

}  // namespace slip
