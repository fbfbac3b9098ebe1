// The inner loops of the CPU backend: one table of functions per instruction set, all made from the
// same source (loops_*.h over vec_<isa>.h). Only plain pointers cross this border, so that no
// shared inline function is compiled with instructions that another machine lacks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/simd/isa.h"

namespace slip {

// Outputs that are computed side by side, one per vector lane.
inline constexpr int64_t kLanes = 16;

// Inputs that share a scale when activations are rounded.
inline constexpr int64_t kActivationGroup = 128;

// Integer weights multiply activations of two bytes, which are as good as float, or of one, which
// cost half the products and change the top choice of one position in thirty of a small model
// (docs/adr/0003-activations-in-two-bytes.md).
constexpr float activation_steps(int bytes) { return bytes == 2 ? 127 * 256 : 127; }

// One row of activations, as f32 and, for integer weights, rounded.
struct RowInput {
  const float* values;
  const int8_t* codes;  // one or two bytes per input, in the order that dot_<isa>.h likes
  const float* scales;  // [groups]
  const int32_t* sums;  // [groups], of the rounded values
};

// Blocks [first_block, first_block + blocks) of 16 outputs, for `row_count` rows:
// out[row * out_stride + (block - first_block) * 16 + lane]. Of the weight's last block, lanes from
// out_count on do not exist and are not written.
struct LinearTile {
  const std::byte* weight;  // packed, from its first block
  const float* scales;      // fp8: [ceil(out/128), ceil(in/128)]; int8: [all blocks * 16]
  int64_t in;
  int64_t group;  // int4: inputs per scale
  int64_t first_block;
  int64_t blocks;
  int64_t out_count;  // outputs from the first block on
  const RowInput* rows;
  int64_t row_count;
  float* out;
  int64_t out_stride;
  bool add;               // out += instead of out =
  const std::byte* next;  // weights that are read behind these, or null: those that lie there
};

// Recorded updates of a state, S <- alpha S + k d^T each, of one value head and a range of columns.
struct DeltaUpdates {
  int64_t rows = 0;
  const float* k = nullptr;  // [rows, key_dim]
  int64_t k_stride = 0;
  const float* delta = nullptr;  // at the first column
  int64_t delta_stride = 0;
  const float* alpha = nullptr;
  int64_t alpha_stride = 0;
};

// One value head of the delta rule over consecutive rows of one sequence, for a range of columns.
struct DeltaColumns {
  float* state;          // [key_dim, value_dim], at the first column
  int64_t state_stride;  // value_dim
  float* next_state;     // the columns that this thread reads behind these, or null
  int64_t key_dim;
  int64_t columns;
  DeltaUpdates replay;  // applied to `state` when it is read
  float* work;          // [key_dim * columns, rounded up to whole vectors]: the state between rows
  bool from_work;       // earlier rows of the span have left it there
  bool to_work;         // more rows of the span follow
  int64_t rows;
  const float* q;  // [rows, key_dim], normalised and scaled
  const float* k;  // [rows, key_dim], normalised
  const float* v;  // at the first column; row stride below
  int64_t v_stride;
  const float* alpha;      // [rows]
  const float* beta;       // [rows]
  const float* key_query;  // [rows]: product of a row's key and query
  float* delta;  // null, or at the first column: rows are recorded and leave `state` alone
  int64_t delta_stride;
  float* out;  // at the first column
  int64_t out_stride;
};

// Positions of one page that are attended to at a time.
inline constexpr int64_t kMaxPageSlice = 64;

// How plain keys and values are stored. fp8 is read as value / 256: the caller makes up for it.
enum class StoredKv : uint8_t { f32, bf16, fp8 };
inline constexpr float kStoredFp8Factor = 256.0f;

// A slice of a page of keys and values against the queries that read it: heads that share the kv
// head, of one or several rows. Running maximum, denominator and undivided output per query.
struct AttentionPage {
  const void* keys;    // [positions, head_dim]
  const void* values;  // [positions, head_dim]
  StoredKv stored;
  int64_t stride;  // values from one position to the next
  int64_t head_dim;
  int64_t queries;
  const float* const* q;     // [queries], each [head_dim], already scaled
  const int64_t* positions;  // [queries]: the visible ones end here, 1..kMaxPageSlice
  const int64_t* hidden;     // [queries]: and begin here; null: at 0
  float* maximum;            // [queries]
  float* denominator;        // [queries]
  float* const* out;         // [queries], each [head_dim]
};

// A code book as loops take it: thresholds + 1 levels, rising.
struct CodeBook {
  const int8_t* levels;
  const float* threshold;
  int thresholds;
  float kappa;
};

// The keys or the values of one coded page and head; the layout is kernels/cpu/kv_codes.h's.
struct CodedMatrix {
  const uint16_t* codes;
  int bits;                // 8, 4, 3 or 2
  const int8_t* book;      // [16] levels, unless 8 bits
  const uint16_t* scales;  // bf16 [kMaxPageSlice]
};

// Queries and softmax weights meet codes as integers of 16 bits: the output is then off by 1e-4.
// With one byte each it would be 1.5e-2, because a page with a peak loses its small weights. Sums
// of 1024 products with levels of at most 127 must fit into 32 bits.
inline constexpr int kQuerySteps = 16383;
inline constexpr int kWeightSteps = 32767;

struct CodedScratch {
  int16_t* levels;       // [max(head_dim, kMaxPageSlice) * 2 * kLanes]
  float* scores;         // [queries, kMaxPageSlice]
  int16_t* weights;      // [queries, kMaxPageSlice]
  float* weight_scales;  // [queries]
  float* rescale;        // [queries]
};

// A whole coded page against the queries that read it, otherwise as AttentionPage.
struct CodedPage {
  CodedMatrix keys;
  CodedMatrix values;
  const uint16_t* next_keys;  // of the page after this one, to ask for them in time
  int64_t head_dim;
  int64_t queries;
  const int16_t* q;       // [queries, head_dim], from round_query()
  const float* q_scales;  // [queries]
  float* maximum;         // [queries]
  float* denominator;     // [queries]
  float* out;             // [queries, head_dim]
  CodedScratch scratch;
};

// out = factor * (x / sqrt(mean(x^2) + eps) * scale), or with `add` factor * (out + the same).
struct NormRow {
  const float* x;
  const float* scale;  // null: 1
  int64_t count;
  float eps;
  float* out;
  bool add = false;
  float factor = 1;
};

// The largest value of a row, the first among equals, and the largest of the others. What is no
// number is not seen.
struct RowPeak {
  int64_t index;
  float value, runner_up;
};

struct Loops {
  Isa isa;
  int activation_bytes;  // 1 or 2

  // Rounds a row, one scale per group: round(x / (max|x| / activation_steps)).
  void (*quantize_row)(const float* x, int64_t count, int64_t group, int8_t* codes, float* scales,
                       int32_t* sums);

  void (*linear_f32)(const LinearTile& tile);
  void (*linear_bf16)(const LinearTile& tile);
  void (*linear_f16)(const LinearTile& tile);
  void (*linear_fp8)(const LinearTile& tile);
  void (*linear_int8)(const LinearTile& tile);
  void (*linear_int4)(const LinearTile& tile);

  void (*rms_norm)(const NormRow& row);
  void (*gated_rms_norm)(const float* x, const float* gate, const float* scale, int64_t count,
                         float eps, float* out);
  void (*silu_mul)(const float* gate, const float* up, int64_t count, float* out);
  void (*gelu_mul)(const float* gate, const float* up, int64_t count, float* out);  // tanh GELU
  void (*soft_cap)(float cap, int64_t count, float* x);
  void (*scale)(float factor, int64_t count, float* x);
  void (*sigmoid_mul)(const float* gate, int64_t count, float* x);
  RowPeak (*peak)(const float* x, int64_t count);  // count below 2^24
  // out = silu(sum over `width` rows of inputs * weights), channel by channel
  void (*conv_silu)(const float* const* inputs, const float* weight, int64_t weight_stride,
                    int64_t width, int64_t channels, float* out);
  float (*inner_product)(const float* x, const float* y, int64_t count);
  // out = x / sqrt(sum of squares + 1e-6) * factor
  void (*l2_normalize)(const float* x, int64_t count, float factor, float* out);
  void (*scaled_add)(const float* x, float factor, int64_t count, float* out);
  void (*delta_columns)(const DeltaColumns& columns);
  void (*attention_page)(const AttentionPage& page);

  // Coded keys and values. As quant/turboquant.h has them, in place and bit for bit; sizes are
  // powers of two, 16 or more. The scale of turbo_encode() is not yet rounded to bf16.
  void (*turbo_rotate)(const float* signs, int64_t dim, float* x);
  void (*turbo_unrotate)(const float* signs, int64_t dim, float* x);
  float (*turbo_encode)(const float* rotated, int64_t dim, const CodeBook& book, uint8_t* indices);
  float (*turbo_encode_int8)(const float* rotated, int64_t dim, int8_t* codes);
  float (*round_query)(const float* q, int64_t dim, int16_t* codes);  // returns the scale
  void (*attention_codes)(const CodedPage& page);

  // Speed probes for the roofs: sums that must read everything, and int8 products from registers.
  uint64_t (*read_bytes)(const std::byte* data, size_t bytes);
  int64_t (*int8_products)(int64_t rounds);  // returns how many products one call made
};

const Loops& loops_for(Isa isa, int activation_bytes = 2);

}  // namespace slip
