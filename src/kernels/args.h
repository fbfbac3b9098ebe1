// The arguments of every operation in ops.h. Activations are f32, row-major; `rows` are the tokens
// of a step, possibly of several sequences. Dimension names are the same everywhere.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "quant/kv_recipe.h"
#include "quant/weight.h"
#include "tensor/view.h"

namespace slip {

// Rows [first_row, first_row + rows) of a step belong to one sequence, at positions start,
// start + 1, ... Everything a kernel needs to know about sequences.
struct Span {
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t start = 0;                 // position of the first row
  int32_t state_slot = 0;            // where its recurrent state and tails lie
  std::span<const int32_t> pages{};  // page of positions [i * page_len, (i + 1) * page_len)

  // Recurrent state rolls back by record and replay. The rows of a recording span may be rejected:
  // they leave the state alone and record their updates. The sequence's next step first applies
  // the accepted ones. Two sides take turns, so that a step may read one and write the other.
  bool record = false;
  int32_t replay = 0;       // rows of the other side that were accepted
  int32_t record_side = 0;  // 0 or 1
};

// out[r] = factor * table[ids[r]]
struct EmbedArgs {
  View ids;      // i32 [rows]; empty: the table's first rows, in order
  Weight table;  // [vocabulary, hidden]; may be plain floats, which lie where all views do
  View out;      // [rows, hidden]
  float factor = 1;
};

// out = factor * (x / sqrt(mean(x^2) + eps) * scale), per row, or
// out = factor * (out + x / sqrt(mean(x^2) + eps) * scale)
struct RmsNormArgs {
  View x;      // [rows, dim]
  View scale;  // [dim]; "1 + weight" where the checkpoint stores zero-centred weights; empty: 1
  View out;    // [rows, dim]; may alias x
  float eps;
  bool add = false;
  float factor = 1;
};

// A branch joins the residual, which is then normed for those that read it next. What is written is
// apart from what is read, but that the sum may be the residual:
//   sum = factor * (residual + norm(branch) * scale)
//   out = factor * (norm(sum) * scale), for every output
struct NormOutput {
  View scale;  // [dim]
  View out;    // [rows, dim]
  float factor = 1;
};
struct AddBranchArgs {
  View branch;    // [rows, dim]; scratch afterwards
  View scale;     // [dim]
  View residual;  // [rows, dim]
  float eps;
  float factor = 1;
  View sum{};  // [rows, dim]; empty: the residual itself
  // Two branches are normed each for itself and added before that:
  // branch = norm(branch) * branch_scale + norm(beside) * beside_scale
  View beside{};  // [rows, dim]; empty: one branch alone
  View branch_scale{}, beside_scale{};
  std::span<const NormOutput> outputs{};

  const View& joined() const { return sum.empty() ? residual : sum; }
};

// out = W x, or out += W x
struct LinearArgs {
  View x;         // [rows, in]
  Weight weight;  // [out, in]
  View out;       // [rows, out]
  bool add = false;
};

// Several weights on one input. One pass over x, one parallel region.
struct LinearOutput {
  const Weight& weight;  // [out, in]
  View out;              // [rows, out]
};
struct LinearsArgs {
  View x;  // [rows, in]
  std::span<const LinearOutput> outputs;
};

// The same on norm.out, which is written, too.
struct NormLinearsArgs {
  RmsNormArgs norm;
  std::span<const LinearOutput> outputs;
};

// The same on the first output of a branch that joins the residual.
struct AddBranchLinearsArgs {
  AddBranchArgs branch;  // with outputs
  std::span<const LinearOutput> outputs;
};

// silu(x) = x * sigmoid(x); gelu_tanh(x) = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
enum class Activation : uint8_t { silu, gelu_tanh };

// out = activation(gate) * up
struct GatedMulArgs {
  View gate;  // [rows, width]
  View up;    // [rows, width], or wider: then its columns from first_column on
  View out;   // [rows, width]; may alias gate, and up where that is as wide
  Activation activation = Activation::silu;
  int64_t first_column = 0;
};

// x = cap * tanh(x / cap)
struct SoftCapArgs {
  View x;  // [rows, width]; in and out
  float cap;
};

// out = a | b, row by row
struct JoinArgs {
  View a;    // [rows, left]
  View b;    // [rows, right]
  View out;  // [rows, left + right]
};

// down (activation(gate x) * (up x)): a dense MLP, a shared expert or one routed expert
struct GatedMlp {
  Weight gate;  // [width, hidden]
  Weight up;    // [width, hidden]
  Weight down;  // [hidden, width]
};

// out += mlp(x), or out = mlp(x)
struct GatedMlpArgs {
  View x;  // [rows, hidden]
  const GatedMlp& mlp;
  View scratch;  // [2, rows, width] or larger
  View out;      // [rows, hidden]
  Activation activation = Activation::silu;
  bool add = false;
};

// Softmax over all experts, the top_k largest (lowest index first among equals), renormalised, then
// times the scale of each.
struct RouteArgs {
  View logits;    // [rows, experts]
  View ids;       // i32 [rows, top_k], falling logit
  View weights;   // [rows, top_k]
  View scales{};  // [experts]; empty: 1
};

// out += sum_i weights[i] * expert_ids[i](x) + sigmoid(shared_gate) * shared(x), or out = the same.
// Experts are summed in rank order, the shared one last, so that a row's result does not depend on
// the rows beside it.
struct ExpertsArgs {
  View x;                             // [rows, hidden]
  View ids;                           // i32 [rows, top_k]
  View weights;                       // [rows, top_k]
  std::span<const GatedMlp> experts;  // all of one shape
  const GatedMlp& shared;             // width may differ from the experts'; empty: there is none
  View shared_gate;                   // [rows, 1] raw logit
  View scratch;                       // f32, experts_scratch_values() or more
  View out;                           // [rows, hidden]
  Activation activation = Activation::silu;
  bool add = false;
};

// Experts by their logits: ids and weights of `experts` are written, then read.
struct RoutedExpertsArgs {
  View logits;  // [rows, experts]
  ExpertsArgs experts;
  View scales{};  // [experts]; empty: 1

  // Its first part.
  RouteArgs routing() const {
    return {.logits = logits, .ids = experts.ids, .weights = experts.weights, .scales = scales};
  }
};

// A dense MLP and experts without a shared one, neither of which needs the other.
struct MlpAndExpertsArgs {
  GatedMlpArgs mlp;
  RoutedExpertsArgs experts;
};

// A head whose rows are sorted into clusters, of which each row of x asks a few: those tokens get
// their logits, all others the least of them minus 1.
struct ClusterHeadArgs {
  View x;                            // [rows, in]
  View chosen;                       // i32 [rows, top_k], clusters
  std::span<const Weight> clusters;  // each [cluster_size, in]
  View tokens;                       // i32 [clusters, cluster_size]: whose logit each row makes
  View scratch;                      // [rows, top_k, cluster_size] or larger
  View out;                          // [rows, vocabulary]
};

// Depthwise causal convolution over the last `width` inputs, then SiLU. The tail of raw inputs is
// read at the start of each span and left behind for the next step. A recording span puts its
// inputs behind the tail instead; replaying n of them moves the tail on by n.
struct CausalConvArgs {
  View x;       // [rows, channels]
  View weight;  // [width, channels]; the last row multiplies the current token
  View tail;    // [slots, width - 1 + record_rows, channels], oldest first; in and out
  View out;     // [rows, channels]; must not alias x
  std::span<const Span> spans;
};

// Updates of the delta rule by rows that may be rejected; empty views where no span records or
// replays.
struct DeltaRecord {
  View keys;    // [2 * slots, record_rows, key_heads, key_dim]: k'; outermost 2 * slot + side
  View deltas;  // [2 * slots, record_rows, value_heads, value_dim]: d
  View decays;  // [2 * slots, record_rows, value_heads]: alpha
};

// Gated delta rule, per value head h with key head h / (value_heads / key_heads):
//   q', k' = q, k / sqrt(sum of squares + 1e-6);  beta = sigmoid(b);
//   alpha = exp(-rate * softplus(a + dt_bias))
//   S <- alpha S;  d = beta (v - S^T k');  S <- S + k' d^T;  out = S^T q' / sqrt(key_dim)
struct DeltaNetArgs {
  View qkv;      // [rows, 2 * key_heads * key_dim + value_heads * value_dim]: q | k | v
  View a;        // [rows, value_heads]
  View b;        // [rows, value_heads]
  View rate;     // [value_heads], exp(A_log)
  View dt_bias;  // [value_heads]
  View state;    // [slots, value_heads, key_dim, value_dim]; in and out
  DeltaRecord record{};
  View out;  // [rows, value_heads, value_dim]
  int64_t key_heads;
  std::span<const Span> spans;
};

// out = x / sqrt(mean(x^2) + eps) * scale * silu(gate), per head
struct GatedRmsNormArgs {
  View x;      // [rows, heads, dim]
  View gate;   // [rows, heads, dim]
  View scale;  // [dim]
  View out;    // [rows, heads, dim]; may alias x
  float eps;
};

// What a delta-net layer does behind its projections, in one operation:
// out += weight gated_rms_norm(delta_net(causal_conv(qkv)), z)
struct GatedDeltaNetArgs {
  View qkv;                         // [rows, channels], as projected
  View conv;                        // [width, channels]
  View tail;                        // as in CausalConvArgs
  View convolved;                   // [rows, channels]: scratch, used or not
  View a, b, rate, dt_bias, state;  // as in DeltaNetArgs
  DeltaRecord record{};
  View z;           // [rows, value_heads, value_dim]
  View norm_scale;  // [value_dim]
  View mixed;       // [rows, value_heads, value_dim]: scratch, used or not
  float eps;
  Weight weight;  // [hidden, value_heads * value_dim]
  View out;       // [rows, hidden]
  int64_t key_heads;
  std::span<const Span> spans;

  // Its parts.
  CausalConvArgs convolution() const {
    return {.x = qkv, .weight = conv, .tail = tail, .out = convolved, .spans = spans};
  }
  DeltaNetArgs delta_rule() const {
    return {.qkv = convolved,
            .a = a,
            .b = b,
            .rate = rate,
            .dt_bias = dt_bias,
            .state = state,
            .record = record,
            .out = mixed,
            .key_heads = key_heads,
            .spans = spans};
  }
  GatedRmsNormArgs norm() const {
    return {.x = mixed, .gate = z, .scale = norm_scale, .out = mixed, .eps = eps};
  }
  LinearArgs projection() const {
    return {.x = mixed.reshaped({mixed.shape[0], mixed.shape[1] * mixed.shape[2]}),
            .weight = weight,
            .out = out,
            .add = true};
  }
};

// cos and sin of position * frequency for every row of a step; shared by all layers.
struct RopeTableArgs {
  View frequencies;  // [pairs]
  float scale;       // multiplies both (YaRN); 1 otherwise
  View cos;          // [rows, pairs]
  View sin;          // [rows, pairs]
  std::span<const Span> spans;
};

// Keys and values of one layer; position p of a sequence lies in page pages[p / page_len]. A layer
// that looks back only so far keeps a ring of pages for each sequence instead: the page of position
// p is state_slot * ring_pages + p / page_len % ring_pages.
//
// Plain recipes have keys and values alone. Coded ones (quant/turboquant.h) keep whole pages as
// codes, in a layout that the backend chooses, and the newest positions, rotated, as bf16 in a
// tail. A row at position p reads the page that p lies in uncoded and all earlier pages as codes,
// so that its result depends on p alone, not on which rows are computed together.
struct KvPages {
  View keys;    // plain: [pages, kv_heads, page_len, head_dim]
  View values;  // coded: u8 [pages, kv_heads, page_len * bits * head_dim / 8]
  KvRecipe recipe{};

  // Coded only.
  View key_scales{};  // bf16 [pages, kv_heads, page_len]
  View value_scales{};
  View key_tail{};  // bf16 [slots, kv_heads, 2 * page_len, head_dim]; kv_tail.h: what lies where
  View value_tail{};

  int64_t ring_pages = 0;  // plain only; 0: the span's pages

  int64_t page_of(const Span& span, int64_t position, int64_t page_len) const {
    const int64_t page = position / page_len;
    return ring_pages > 0 ? span.state_slot * ring_pages + page % ring_pages
                          : span.pages[size_t(page)];
  }
};

// Normalises and rotates queries and keys and appends keys and values to the cache. Rotation pairs
// dimension j with j + pairs for j < pairs; dimensions from 2 * pairs on pass through. With a coded
// recipe k and v are left as the tail holds them (Hadamard-rotated, rounded to bf16), and every
// page that a row completes is coded: drafts that are rejected later will be written again.
// Without k and v, queries alone: the layer reads keys that another has stored.
struct RotateAndStoreArgs {
  View q;        // [rows, q_heads, q_stride]; the first head_dim of each head are the query
  View k;        // [rows, kv_heads, head_dim]; changed when coded; may be empty, and v with it
  View v;        // [rows, kv_heads, head_dim]; changed when coded
  View q_scale;  // [head_dim]
  View k_scale;  // [head_dim]; empty without k
  float eps;
  View cos;    // [rows, pairs]
  View sin;    // [rows, pairs]
  View out_q;  // [rows, q_heads, head_dim]
  KvPages kv;
  std::span<const Span> spans;
  bool norm_v = false;  // values are normalised too, without a scale
};

// Causal softmax attention of every row to its own sequence, positions 0 up to its own, or the
// `window` last of these. Query head h reads kv head h / (q_heads / kv_heads).
struct AttentionArgs {
  View q;  // [rows, q_heads, head_dim]
  KvPages kv;
  View out;  // [rows, q_heads, head_dim]; must not alias q
  float scale;
  std::span<const Span> spans;
  // [rows, kv_heads, head_dim], as rotate_and_store() left them; read when coded. Empty: the rows
  // ask about positions that an earlier step stored, and read the page that the next position lies
  // in uncoded instead of their own.
  View k{};
  View v{};
  int64_t window = 0;  // positions; 0: all. Not with a coded recipe
};

// x *= sigmoid(gate); the gate of head h is the second half of q_and_gate[h]
struct GateHeadsArgs {
  View x;           // [rows, heads, dim]; in and out
  View q_and_gate;  // [rows, heads, 2 * dim]
};

// out += weight (x * sigmoid(gate)), with all heads of a row side by side
struct GateHeadsLinearArgs {
  View x;           // [rows, heads, dim]; what is gated may go here, too
  View q_and_gate;  // [rows, heads, 2 * dim]
  Weight weight;    // [hidden, heads * dim]
  View out;         // [rows, hidden]

  // Its parts.
  GateHeadsArgs gating() const { return {.x = x, .q_and_gate = q_and_gate}; }
  LinearArgs projection() const {
    return {.x = x.reshaped({x.shape[0], x.shape[1] * x.shape[2]}),
            .weight = weight,
            .out = out,
            .add = true};
  }
};

// The largest value of each row, the first among equals, and the largest of the others.
struct Peak {
  int32_t id;
  float value;
  float runner_up;
};
struct PeaksArgs {
  View x;         // [rows, width], width of 2 or more
  View out;       // i32 [rows, 3]: a Peak each
  View tokens{};  // i32 [width]: what columns stand for; empty: themselves
  View ids{};     // i32 [rows]: the id of each Peak once more, for operations to come; may be empty

  // Hands out the peak of a row, found at column `peak.id`; for backends that compute on the host.
  void put(int64_t row, Peak peak) const {
    if (!tokens.empty()) peak.id = tokens.i32()[peak.id];
    if (!ids.empty()) ids.i32()[row] = peak.id;
    std::memcpy(out.i32() + row * 3, &peak, sizeof(peak));
  }
};

// The largest values of each row, falling, equal ones by rising id: what a choice by chance needs
// of a row. What is no number counts as -inf, and -0 is 0. A row of fewer values is filled up with
// id -1 and -inf.
struct Candidate {
  int32_t id;
  float value;
};
// Published generation configs choose among 20 or 64; the others make up for those that penalties
// and grammars take out.
inline constexpr int64_t kCandidates = 128;
using Candidates = std::array<Candidate, kCandidates>;
struct CandidatesArgs {
  View x;    // [rows, width]
  View out;  // i32 [rows, kCandidates, 2]: a Candidate each
};

// Values of scratch that ExpertsArgs needs: for each row gate and up of every expert that it meets,
// and one output.
constexpr int64_t experts_scratch_values(int64_t rows, int64_t top_k, int64_t width,
                                         int64_t shared_width, int64_t hidden) {
  return rows * ((top_k + 1) * (2 * (width > shared_width ? width : shared_width)) + hidden);
}

}  // namespace slip
