// Shape checks at the door of every op, the same for all backends: a mismatch stops with the name
// of the dimension ("linear: in: x has 2048, weight has 4096") instead of reading past an end.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

#include "base/check.h"
#include "kernels/args.h"

namespace slip {

// The name of a dimension. Compared by a hash (FNV-1a) that the compiler has computed: all threads
// wait while an op looks at its shapes.
struct DimName {
  // NOLINTNEXTLINE(google-explicit-constructor): names are written as plain text.
  consteval DimName(const char* name) : text(name) {
    for (const char* c = name; *c != 0; ++c) hash = (hash ^ uint64_t(*c)) * 0x100000001b3;
  }

  const char* text;
  uint64_t hash = 0xcbf29ce484222325;
};

// A name binds to a size on first use and must agree from then on. No allocation unless it fails:
// ops are called hundreds of times in a step.
class Dims {
 public:
  explicit Dims(const char* op, SourceLocation where = SourceLocation::current())
      : op_(op), where_(where) {}

  void match(const char* tensor, const Shape& shape, std::initializer_list<DimName> names) {
    if (shape.rank() != int(names.size()))
      fail_check(
          cat(op_, ": ", tensor, " has shape ", shape, ", expected ", names.size(), " dimensions"),
          where_);
    int axis = 0;
    for (const DimName& name : names) bind(tensor, name, shape[axis++]);
  }

  void match(const char* tensor, const Weight& weight, DimName out, DimName in) {
    bind(tensor, out, weight.info.out);
    bind(tensor, in, weight.info.in);
  }

  // For sizes that no single tensor shows, such as key_heads.
  void bind(const char* tensor, DimName name, int64_t size) {
    for (int i = 0; i < used_; ++i) {
      const Bound& bound = bound_[size_t(i)];
      if (bound.name != name.hash) continue;
      if (bound.size != size)
        fail_check(cat(op_, ": ", name.text, ": ", bound.tensor, " has ", bound.size, ", ", tensor,
                       " has ", size),
                   where_);
      return;
    }
    require(used_ < int(bound_.size()), "too many dimension names");
    bound_[size_t(used_++)] = {name.hash, tensor, size};
  }

  int64_t operator[](DimName name) const {
    for (int i = 0; i < used_; ++i)
      if (bound_[size_t(i)].name == name.hash) return bound_[size_t(i)].size;
    fail_check(cat(op_, ": no dimension ", name.text), where_);
  }

  template <class... Parts>
  void require(bool condition, const Parts&... parts) const {
    if (!condition) [[unlikely]]
      fail_check(cat(op_, ": ", parts...), where_);
  }

  // Spans lie inside the step's rows.
  void check_spans(std::span<const Span> spans) const {
    const int64_t rows = (*this)["rows"];
    for (const Span& span : spans)
      require(span.first_row >= 0 && span.rows >= 0 && span.first_row + span.rows <= rows,
              "span of rows [", span.first_row, ", ", span.first_row + span.rows, ") in a step of ",
              rows);
  }

  void check_slots(std::span<const Span> spans) const {
    check_spans(spans);
    const int64_t slots = (*this)["slots"];
    for (const Span& span : spans)
      require(span.state_slot >= 0 && span.state_slot < slots, "state slot ", span.state_slot,
              " of ", slots);
  }

  // Replayed and recorded rows fit into what the record holds.
  void check_records(std::span<const Span> spans) const {
    const int64_t capacity = (*this)["record_rows"];
    for (const Span& span : spans) {
      require(span.replay >= 0 && span.replay <= capacity, "replay of ", span.replay, " rows of ",
              capacity);
      require(!span.record || span.rows <= capacity, "records ", span.rows, " rows of ", capacity);
      require(span.record_side == 0 || span.record_side == 1, "record side ", span.record_side);
    }
  }

  // Keys and values, plain or coded; binds pages, kv_heads, page_len and head_dim.
  void match_kv(const KvPages& kv) {
    if (!kv.recipe.coded()) {
      match("keys", kv.keys.shape, {"pages", "kv_heads", "page_len", "head_dim"});
      match("values", kv.values.shape, {"pages", "kv_heads", "page_len", "head_dim"});
      return;
    }
    match("key_scales", kv.key_scales.shape, {"pages", "kv_heads", "page_len"});
    match("value_scales", kv.value_scales.shape, {"pages", "kv_heads", "page_len"});
    match("key_tail", kv.key_tail.shape, {"slots", "kv_heads", "2 * page_len", "head_dim"});
    match("value_tail", kv.value_tail.shape, {"slots", "kv_heads", "2 * page_len", "head_dim"});
    bind("key_scales", "2 * page_len", 2 * (*this)["page_len"]);
    match("keys", kv.keys.shape, {"pages", "kv_heads", "key bytes"});
    match("values", kv.values.shape, {"pages", "kv_heads", "value bytes"});
    const int64_t values = (*this)["page_len"] * (*this)["head_dim"];
    bind("recipe", "key bytes", values * bits_of(kv.recipe.keys) / 8);
    bind("recipe", "value bytes", values * bits_of(kv.recipe.values) / 8);
  }

  // Every position up to a span's last row has a page, and those that the span's rows lie in exist.
  // The cache vouches for those before them, which may be thousands.
  void check_pages(std::span<const Span> spans, const KvPages& kv) const {
    check_spans(spans);
    if (kv.ring_pages > 0) {
      const int64_t pages = (*this)["pages"];
      for (const Span& span : spans)
        require(span.state_slot >= 0 && (span.state_slot + 1) * kv.ring_pages <= pages,
                "state slot ", span.state_slot, " with rings of ", kv.ring_pages, " pages of ",
                pages);
      return;
    }
    const int64_t page_len = (*this)["page_len"];
    for (const Span& span : spans) {
      const int64_t end = span.start + span.rows;
      require(span.start >= 0 && int64_t(span.pages.size()) * page_len >= end, "span ends at ", end,
              " but has ", span.pages.size(), " pages of ", page_len);
      check_pages_exist(span, span.start / page_len, end);
    }
  }

  // Those too, after check_pages(): the reference looks at every page.
  void check_all_pages(std::span<const Span> spans, const KvPages& kv) const {
    if (kv.ring_pages > 0) return;
    for (const Span& span : spans) check_pages_exist(span, 0, span.start + span.rows);
  }

 private:
  // The pages of a span from `first` on that positions before `end` lie in.
  void check_pages_exist(const Span& span, int64_t first, int64_t end) const {
    const int64_t pages = (*this)["pages"], page_len = (*this)["page_len"];
    for (int64_t i = first; i * page_len < end; ++i)
      require(span.pages[size_t(i)] >= 0 && span.pages[size_t(i)] < pages, "page ",
              span.pages[size_t(i)], " of ", pages);
  }

  struct Bound {
    uint64_t name;  // its hash
    const char* tensor;
    int64_t size;
  };

  const char* op_;
  SourceLocation where_;
  std::array<Bound, 16> bound_;  // the first used_ are set
  int used_ = 0;
};

// The checks of each op. They return the dimensions, so that an op may read its sizes by name.

inline Dims check_shapes(const EmbedArgs& args) {
  Dims dims("embed");
  if (!args.ids.empty()) dims.match("ids", args.ids.shape, {"rows"});
  dims.match("table", args.table, "vocabulary", "hidden");
  dims.match("out", args.out.shape, {"rows", "hidden"});
  dims.require(!args.ids.empty() || dims["rows"] <= dims["vocabulary"], "the first ", dims["rows"],
               " rows of a table of ", dims["vocabulary"]);
  return dims;
}

inline Dims check_shapes(const RmsNormArgs& args) {
  Dims dims("rms_norm");
  dims.match("x", args.x.shape, {"rows", "dim"});
  if (!args.scale.empty()) dims.match("scale", args.scale.shape, {"dim"});
  dims.match("out", args.out.shape, {"rows", "dim"});
  return dims;
}

inline Dims check_shapes(const AddBranchArgs& args) {
  Dims dims("add_branch");
  dims.match("branch", args.branch.shape, {"rows", "dim"});
  dims.match("scale", args.scale.shape, {"dim"});
  dims.match("residual", args.residual.shape, {"rows", "dim"});
  if (!args.sum.empty()) dims.match("sum", args.sum.shape, {"rows", "dim"});
  if (!args.beside.empty()) {
    dims.match("beside", args.beside.shape, {"rows", "dim"});
    dims.match("branch_scale", args.branch_scale.shape, {"dim"});
    dims.match("beside_scale", args.beside_scale.shape, {"dim"});
  }
  for (const NormOutput& output : args.outputs) {
    dims.match("output's scale", output.scale.shape, {"dim"});
    dims.match("output", output.out.shape, {"rows", "dim"});
  }
  return dims;
}

inline Dims check_shapes(const LinearArgs& args) {
  Dims dims("linear");
  dims.match("x", args.x.shape, {"rows", "in"});
  dims.match("weight", args.weight, "out", "in");
  dims.match("out", args.out.shape, {"rows", "out"});
  return dims;
}

inline Dims check_shapes(const GatedMulArgs& args) {
  Dims dims("gated_mul");
  dims.match("gate", args.gate.shape, {"rows", "width"});
  dims.match("up", args.up.shape, {"rows", "up_width"});
  dims.match("out", args.out.shape, {"rows", "width"});
  dims.require(args.first_column >= 0 && args.first_column + dims["width"] <= dims["up_width"],
               "columns from ", args.first_column, " of ", dims["up_width"], ", width ",
               dims["width"]);
  return dims;
}

inline Dims check_shapes(const SoftCapArgs& args) {
  Dims dims("soft_cap");
  dims.match("x", args.x.shape, {"rows", "width"});
  dims.require(args.cap > 0, "cap ", args.cap);
  return dims;
}

inline Dims check_shapes(const JoinArgs& args) {
  Dims dims("join");
  dims.match("a", args.a.shape, {"rows", "left"});
  dims.match("b", args.b.shape, {"rows", "right"});
  dims.match("out", args.out.shape, {"rows", "left + right"});
  dims.bind("a and b", "left + right", dims["left"] + dims["right"]);
  return dims;
}

inline Dims check_shapes(const PeaksArgs& args) {
  Dims dims("peaks");
  dims.match("x", args.x.shape, {"rows", "width"});
  dims.match("out", args.out.shape, {"rows", "values of a Peak"});
  dims.bind("Peak", "values of a Peak", 3);
  if (!args.tokens.empty()) dims.match("tokens", args.tokens.shape, {"width"});
  if (!args.ids.empty()) dims.match("ids", args.ids.shape, {"rows"});
  dims.require(dims["width"] >= 2, "width ", dims["width"]);
  return dims;
}

inline Dims check_shapes(const CandidatesArgs& args) {
  Dims dims("candidates");
  dims.match("x", args.x.shape, {"rows", "width"});
  dims.match("out", args.out.shape, {"rows", "candidates", "values of a Candidate"});
  dims.bind("kCandidates", "candidates", kCandidates);
  dims.bind("Candidate", "values of a Candidate", 2);
  dims.require(dims["width"] >= 1, "width ", dims["width"]);
  return dims;
}

inline Dims check_shapes(const GatedMlpArgs& args) {
  Dims dims("gated_mlp");
  dims.match("x", args.x.shape, {"rows", "hidden"});
  dims.match("gate", args.mlp.gate, "width", "hidden");
  dims.match("up", args.mlp.up, "width", "hidden");
  dims.match("down", args.mlp.down, "hidden", "width");
  dims.match("out", args.out.shape, {"rows", "hidden"});
  const int64_t needed = 2 * dims["rows"] * dims["width"];
  dims.require(args.scratch.count() >= needed, "scratch has ", args.scratch.count(),
               " values, needs ", needed);
  return dims;
}

inline Dims check_shapes(const RouteArgs& args) {
  Dims dims("route");
  dims.match("logits", args.logits.shape, {"rows", "experts"});
  dims.match("ids", args.ids.shape, {"rows", "top_k"});
  dims.match("weights", args.weights.shape, {"rows", "top_k"});
  if (!args.scales.empty()) dims.match("scales", args.scales.shape, {"experts"});
  dims.require(dims["top_k"] <= dims["experts"], "top_k ", dims["top_k"], " of ", dims["experts"],
               " experts");
  return dims;
}

inline Dims check_shapes(const ClusterHeadArgs& args) {
  Dims dims("cluster_head");
  dims.match("x", args.x.shape, {"rows", "in"});
  dims.match("chosen", args.chosen.shape, {"rows", "top_k"});
  dims.match("tokens", args.tokens.shape, {"clusters", "cluster_size"});
  dims.bind("clusters", "clusters", int64_t(args.clusters.size()));
  dims.match("out", args.out.shape, {"rows", "vocabulary"});
  // All clusters are of one shape; the first stands for them. linear() checks the others.
  if (!args.clusters.empty()) dims.match("clusters", args.clusters[0], "cluster_size", "in");
  const int64_t needed = dims["rows"] * dims["top_k"] * dims["cluster_size"];
  dims.require(args.scratch.count() >= needed, "scratch has ", args.scratch.count(),
               " values, needs ", needed);
  return dims;
}

inline Dims check_shapes(const ExpertsArgs& args) {
  Dims dims("experts");
  dims.match("x", args.x.shape, {"rows", "hidden"});
  dims.match("ids", args.ids.shape, {"rows", "top_k"});
  dims.match("weights", args.weights.shape, {"rows", "top_k"});
  dims.match("out", args.out.shape, {"rows", "hidden"});
  // All experts are of one shape; the first stands for them. Its linears check the others.
  int64_t width = 0;
  int64_t shared_width = 0;
  if (!args.experts.empty()) {
    dims.match("experts", args.experts[0].gate, "width", "hidden");
    dims.match("experts", args.experts[0].down, "hidden", "width");
    width = dims["width"];
  }
  if (!args.shared.gate.empty()) {
    dims.match("shared", args.shared.gate, "shared_width", "hidden");
    dims.match("shared", args.shared.down, "hidden", "shared_width");
    dims.match("shared_gate", args.shared_gate.shape, {"rows", "one"});
    dims.bind("shared_gate logits per row", "one", 1);
    shared_width = dims["shared_width"];
  }
  const int64_t needed =
      experts_scratch_values(dims["rows"], dims["top_k"], width, shared_width, dims["hidden"]);
  dims.require(args.scratch.count() >= needed, "scratch has ", args.scratch.count(),
               " values, needs ", needed);
  return dims;
}

inline Dims check_shapes(const CausalConvArgs& args) {
  Dims dims("causal_conv");
  dims.match("x", args.x.shape, {"rows", "channels"});
  dims.match("weight", args.weight.shape, {"width", "channels"});
  dims.match("tail", args.tail.shape, {"slots", "tail rows", "channels"});
  dims.bind("tail", "record_rows", dims["tail rows"] - (dims["width"] - 1));
  dims.require(dims["record_rows"] >= 0, "the tail has ", dims["tail rows"], " rows, the weight ",
               dims["width"]);
  dims.match("out", args.out.shape, {"rows", "channels"});
  dims.check_slots(args.spans);
  dims.check_records(args.spans);
  return dims;
}

inline Dims check_shapes(const DeltaNetArgs& args) {
  Dims dims("delta_net");
  dims.match("state", args.state.shape, {"slots", "value_heads", "key_dim", "value_dim"});
  dims.bind("key_heads", "key_heads", args.key_heads);
  dims.match("qkv", args.qkv.shape, {"rows", "q | k | v"});
  dims.bind("state", "q | k | v",
            2 * args.key_heads * dims["key_dim"] + dims["value_heads"] * dims["value_dim"]);
  dims.match("a", args.a.shape, {"rows", "value_heads"});
  dims.match("b", args.b.shape, {"rows", "value_heads"});
  dims.match("rate", args.rate.shape, {"value_heads"});
  dims.match("dt_bias", args.dt_bias.shape, {"value_heads"});
  dims.match("out", args.out.shape, {"rows", "value_heads", "value_dim"});
  dims.require(args.key_heads > 0 && dims["value_heads"] % args.key_heads == 0, "key_heads ",
               args.key_heads, " must divide value_heads ", dims["value_heads"]);
  if (args.record.keys.empty()) {
    dims.bind("record", "record_rows", 0);
  } else {
    dims.match("record.keys", args.record.keys.shape,
               {"2 * slots", "record_rows", "key_heads", "key_dim"});
    dims.match("record.deltas", args.record.deltas.shape,
               {"2 * slots", "record_rows", "value_heads", "value_dim"});
    dims.match("record.decays", args.record.decays.shape,
               {"2 * slots", "record_rows", "value_heads"});
    dims.bind("state", "2 * slots", 2 * dims["slots"]);
  }
  dims.check_slots(args.spans);
  dims.check_records(args.spans);
  return dims;
}

inline Dims check_shapes(const GatedRmsNormArgs& args) {
  Dims dims("gated_rms_norm");
  dims.match("x", args.x.shape, {"rows", "heads", "dim"});
  dims.match("gate", args.gate.shape, {"rows", "heads", "dim"});
  dims.match("scale", args.scale.shape, {"dim"});
  dims.match("out", args.out.shape, {"rows", "heads", "dim"});
  return dims;
}

inline Dims check_shapes(const RopeTableArgs& args) {
  Dims dims("rope_table");
  dims.match("frequencies", args.frequencies.shape, {"pairs"});
  dims.match("cos", args.cos.shape, {"rows", "pairs"});
  dims.match("sin", args.sin.shape, {"rows", "pairs"});
  dims.check_spans(args.spans);
  return dims;
}

inline Dims check_shapes(const RotateAndStoreArgs& args) {
  Dims dims("rotate_and_store");
  dims.match("q", args.q.shape, {"rows", "q_heads", "q_stride"});
  dims.match("q_scale", args.q_scale.shape, {"head_dim"});
  dims.match("cos", args.cos.shape, {"rows", "pairs"});
  dims.match("sin", args.sin.shape, {"rows", "pairs"});
  dims.match("out_q", args.out_q.shape, {"rows", "q_heads", "head_dim"});
  dims.require(dims["q_stride"] >= dims["head_dim"], "q_stride ", dims["q_stride"],
               " is less than head_dim ", dims["head_dim"]);
  dims.require(2 * dims["pairs"] <= dims["head_dim"], dims["pairs"], " pairs in a head of ",
               dims["head_dim"]);
  dims.check_spans(args.spans);
  if (args.k.empty()) return dims;
  dims.match("k", args.k.shape, {"rows", "kv_heads", "head_dim"});
  dims.match("v", args.v.shape, {"rows", "kv_heads", "head_dim"});
  dims.match("k_scale", args.k_scale.shape, {"head_dim"});
  dims.match_kv(args.kv);
  dims.check_pages(args.spans, args.kv);
  if (args.kv.recipe.coded()) dims.check_slots(args.spans);
  return dims;
}

inline Dims check_shapes(const AttentionArgs& args) {
  Dims dims("attention");
  dims.match("q", args.q.shape, {"rows", "q_heads", "head_dim"});
  dims.match_kv(args.kv);
  dims.match("out", args.out.shape, {"rows", "q_heads", "head_dim"});
  dims.require(dims["kv_heads"] > 0 && dims["q_heads"] % dims["kv_heads"] == 0, "kv_heads ",
               dims["kv_heads"], " must divide q_heads ", dims["q_heads"]);
  dims.check_pages(args.spans, args.kv);
  dims.require(args.window >= 0, "window ", args.window);
  dims.require(args.kv.ring_pages == 0 ||
                   (args.window > 0 && args.window <= args.kv.ring_pages * dims["page_len"]),
               "window ", args.window, " on rings of ", args.kv.ring_pages, " pages");
  if (args.kv.recipe.coded()) {
    dims.require(args.window == 0, "a window over coded keys");
    if (!args.k.empty()) {
      dims.match("k", args.k.shape, {"rows", "kv_heads", "head_dim"});
      dims.match("v", args.v.shape, {"rows", "kv_heads", "head_dim"});
    }
    dims.check_slots(args.spans);
  }
  return dims;
}

inline Dims check_shapes(const GateHeadsArgs& args) {
  Dims dims("gate_heads");
  dims.match("x", args.x.shape, {"rows", "heads", "dim"});
  dims.match("q_and_gate", args.q_and_gate.shape, {"rows", "heads", "2 * dim"});
  dims.bind("x", "2 * dim", 2 * dims["dim"]);
  return dims;
}

}  // namespace slip
