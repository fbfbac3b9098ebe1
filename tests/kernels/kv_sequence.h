// Sequences that run through rotate_and_store and attention in steps of any size, on any backend
// and with any recipe: what they leave in the cache and what they compute can then be compared.
#pragma once

#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "quant/turboquant.h"
#include "tests/kernels/op_cases.h"

namespace slip {

// What codes stand for, without packing them.
inline std::vector<double> coded_and_back(std::span<const float> rotated, KvCodec codec) {
  std::vector<double> values;
  if (codec == KvCodec::int8) {
    std::vector<int8_t> codes(rotated.size());
    const double scale = double(turbo_encode_int8(rotated, codes));
    for (const int8_t code : codes) values.push_back(scale * code);
  } else {
    std::vector<uint8_t> indices(rotated.size());
    const double scale = double(turbo_encode(rotated, bits_of(codec), indices));
    for (const uint8_t index : indices)
      values.push_back(scale * turbo_book(bits_of(codec)).levels[index]);
  }
  return values;
}

struct KvShape {
  int64_t q_heads, kv_heads, head_dim, page_len;

  int64_t pairs() const { return head_dim / 4; }
};

// What a model computes for some positions: queries, keys and values before the norm.
struct KvRows {
  KvShape shape;
  Guarded q;    // [rows, q_heads, head_dim]
  Guarded k;    // [rows, kv_heads, head_dim]
  Guarded v;    // [rows, kv_heads, head_dim]
  Guarded cos;  // [rows, pairs]
  Guarded sin;  // [rows, pairs]

  KvRows(const KvShape& heads, int64_t rows)
      : shape(heads),
        q({rows, heads.q_heads, heads.head_dim}),
        k({rows, heads.kv_heads, heads.head_dim}),
        v({rows, heads.kv_heads, heads.head_dim}),
        cos({rows, heads.pairs()}),
        sin({rows, heads.pairs()}) {}

  KvRows(const KvShape& heads, int64_t rows, Rng& rng) : KvRows(heads, rows) {
    for (const Guarded* tensor : {&q, &k, &v})
      for (float& value : tensor->values()) value = float(rng.normal());
    for (size_t i = 0; i < cos.values().size(); ++i) {
      const double angle = rng.uniform(0, 2 * std::numbers::pi);
      cos.values()[i] = float(std::cos(angle));
      sin.values()[i] = float(std::sin(angle));
    }
  }

  int64_t count() const { return q.view().shape[0]; }

  // Rows [from, from + rows) of `source` become rows [at, at + rows) of this.
  void copy(int64_t at, const KvRows& source, int64_t from, int64_t rows) {
    const auto copy_tensor = [&](const Guarded& to, const Guarded& of) {
      const View part = of.view().slice(from, rows);
      std::memcpy(to.view().slice(at, rows).data, part.data, part.bytes());
    };
    copy_tensor(q, source.q);
    copy_tensor(k, source.k);
    copy_tensor(v, source.v);
    copy_tensor(cos, source.cos);
    copy_tensor(sin, source.sin);
  }
};

// Pages and tails of two slots; poisoned, so that reading what was never written shows.
struct KvStorage {
  KvRecipe recipe;
  std::vector<Guarded> paged;  // keys, values, and when coded their scales: [pages, ...]
  std::vector<Guarded> tails;  // of keys, of values: [2, kv_heads, 2 * page_len, head_dim]

  KvStorage(const KvRecipe& kv_recipe, const KvShape& shape, int64_t pages) : recipe(kv_recipe) {
    const int64_t heads = shape.kv_heads, page_len = shape.page_len, dim = shape.head_dim;
    for (const KvCodec codec : {recipe.keys, recipe.values}) {
      if (is_coded(codec))
        paged.emplace_back(Shape{pages, heads, page_len * dim * bits_of(codec) / 8}, DType::u8);
      else
        paged.emplace_back(Shape{pages, heads, page_len, dim}, plain_dtype(recipe));
    }
    for (int side = 0; side < 2 && recipe.coded(); ++side) {
      paged.emplace_back(Shape{pages, heads, page_len}, DType::bf16);
      tails.emplace_back(Shape{2, heads, 2 * page_len, dim}, DType::bf16);
    }
  }

  KvPages views() const {
    if (!recipe.coded()) return {paged[0], paged[1], recipe};
    return {paged[0], paged[1], recipe, paged[2], paged[3], tails[0], tails[1]};
  }
};

// Stores rows; with a coded recipe they are left rotated. Returns the queries for attention.
inline Guarded store(Ops& ops, const KvRows& rows, const KvPages& pages,
                     std::span<const Span> spans, bool norm_v = false) {
  const Guarded ones = constant_tensor({rows.shape.head_dim}, 1);
  Guarded q(rows.q.view().shape);
  ops.rotate_and_store({.q = rows.q,
                        .k = rows.k,
                        .v = rows.v,
                        .q_scale = ones,
                        .k_scale = ones,
                        .eps = 1e-6f,
                        .cos = rows.cos,
                        .sin = rows.sin,
                        .out_q = q,
                        .kv = pages,
                        .spans = spans,
                        .norm_v = norm_v});
  return q;
}

// Stores rows and attends. Returns attention's output.
inline Guarded run_step(Ops& ops, const KvRows& rows, const KvStorage& storage,
                        std::span<const Span> spans) {
  const Guarded q = store(ops, rows, storage.views(), spans);
  Guarded out(q.view().shape);
  ops.attention({.q = q,
                 .kv = storage.views(),
                 .out = out,
                 .scale = 1.0f / std::sqrt(float(rows.shape.head_dim)),
                 .spans = spans,
                 .k = rows.k,
                 .v = rows.v});
  return out;
}

// One sequence, from position 0 on.
class KvSequence {
 public:
  KvSequence(Ops& ops, const KvRows& inputs, const KvRecipe& recipe)
      : ops_(ops),
        inputs_(inputs),
        pages_(inputs.count() / inputs.shape.page_len + 1),
        storage_(recipe, inputs.shape, pages_),
        out_(inputs.q.view().shape) {
    for (int64_t i = 0; i < pages_; ++i) table_.push_back(int32_t(pages_ - 1 - i));
  }

  // Computes the next `rows` positions.
  void step(int64_t rows) { run(rows, rows, inputs_); }

  // The same without attention: a past to look back on, cheaply.
  void store_only(int64_t rows) {
    KvRows step(inputs_.shape, rows);
    step.copy(0, inputs_, length_, rows);
    const Span span = next_span(rows);
    store(ops_, step, storage_.views(), {&span, 1});
    length_ += rows;
  }

  // Computes `rows` positions, of which `accepted` are right. The others are taken from `wrong`,
  // and forgotten.
  void tentative_step(int64_t rows, int64_t accepted, const KvRows& wrong) {
    run(rows, accepted, wrong);
  }

  int64_t length() const { return length_; }
  const Guarded& out() const { return out_; }  // [positions, q_heads, head_dim]
  const KvStorage& storage() const { return storage_; }

  // Everything that later steps may read, coded recipes only: complete pages with their scales,
  // and of the tails the page that is being filled.
  std::vector<std::byte> contents() const {
    const int64_t heads = inputs_.shape.kv_heads, page_len = inputs_.shape.page_len;
    std::vector<std::byte> bytes;
    const auto append = [&](const View& part) {
      bytes.insert(bytes.end(), part.data, part.data + part.bytes());
    };
    for (const Guarded& tensor : storage_.paged)
      for (int64_t page = 0; page < length_ / page_len; ++page)
        append(tensor.view().slice(table_[size_t(page)], 1));
    for (const Guarded& tail : storage_.tails) {
      const View vectors =
          tail.view().slice(kSlot, 1).reshaped({heads * 2 * page_len, inputs_.shape.head_dim});
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t p = length_ - length_ % page_len; p < length_; ++p)
          append(vectors.slice(h * 2 * page_len + p % (2 * page_len), 1));
    }
    return bytes;
  }

 private:
  static constexpr int32_t kSlot = 1;

  Span next_span(int64_t rows) const {
    return {.rows = rows, .start = length_, .state_slot = kSlot, .pages = table_};
  }

  void run(int64_t rows, int64_t accepted, const KvRows& wrong) {
    KvRows step(inputs_.shape, rows);
    step.copy(0, inputs_, length_, accepted);
    step.copy(accepted, wrong, length_ + accepted, rows - accepted);
    Span span = next_span(rows);
    span.record = accepted < rows;
    const Guarded out = run_step(ops_, step, storage_, {&span, 1});
    const View kept = out_.view().slice(length_, accepted);
    std::memcpy(kept.data, out.view().data, kept.bytes());
    length_ += accepted;
  }

  Ops& ops_;
  const KvRows& inputs_;
  int64_t pages_;
  KvStorage storage_;
  Guarded out_;
  std::vector<int32_t> table_;  // the last page first
  int64_t length_ = 0;
};

}  // namespace slip
