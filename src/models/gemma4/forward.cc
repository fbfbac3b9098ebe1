#include "models/gemma4/forward.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

namespace slip::gemma4 {
namespace {

constexpr Activation kActivation = Activation::gelu_tanh;
const GatedMlp kNoSharedExpert;

// A branch that ends a layer: it joins the residual on its way into the next one's projections.
using Pending = std::optional<AddBranchArgs>;

// to = (from + norm(branch) * scale) * factor
AddBranchArgs join_branch(const Tensor& from, const Tensor& to, const View& scale, float factor,
                          const Pass& pass) {
  return {.branch = pass.of(pass.act.branch),
          .scale = scale,
          .residual = pass.of(from),
          .eps = pass.config.eps,
          .factor = factor,
          .sum = pass.of(to)};
}

// Queries and, of an owner, keys and values, before positions are turned into them.
void project(const AttentionWeights& attention, const View& input_scale, Pending& pending,
             const KindConfig& kind, const View& raw_q, const View& k, const View& v,
             const Pass& pass) {
  const int64_t rows = pass.rows, kv_size = kind.kv_heads * kind.head_dim;
  const LinearOutput projections[] = {
      {attention.q, raw_q.reshaped({rows, pass.config.q_heads * kind.head_dim})},
      {attention.k, k.reshaped({rows, kv_size})},
      {attention.v, v.reshaped({rows, kv_size})}};
  const bool owner = !attention.k.empty();
  const size_t count = !owner ? 1 : kind.values_are_keys ? 2 : 3;
  const auto outputs = std::span(projections).first(count);
  const NormOutput normed{input_scale, pass.of(pass.act.normed)};
  if (pending) {
    pending->outputs = {&normed, 1};
    pass.ops.add_branch_linears({.branch = *pending, .outputs = outputs});
    pending.reset();
  } else {
    pass.ops.norm_linears({.norm = {.x = pass.of(pass.act.residual),
                                    .scale = input_scale,
                                    .out = normed.out,
                                    .eps = pass.config.eps},
                           .outputs = outputs});
  }
  if (!owner || !kind.values_are_keys) return;
  const Shape heads{rows * kind.kv_heads, kind.head_dim};
  pass.ops.rms_norm(
      {.x = k.reshaped(heads), .scale = {}, .out = v.reshaped(heads), .eps = pass.config.eps});
}

// branch = o attention(q, k, v)
void attend(const AttentionWeights& attention, const View& input_scale, Pending& pending,
            const LayerConfig& layer, const Pass& pass) {
  const KindConfig& kind = pass.config.kind_of(layer);
  AttentionBuffers& act = pass.act.of(layer.kind);
  const int64_t rows = pass.rows, q_size = pass.config.q_heads * kind.head_dim;
  const bool owner = !attention.k.empty();
  const View raw_q = pass.of(act.projected), q = pass.of(act.q), attended = pass.of(act.attended);
  const View k = pass.of(act.k), v = pass.of(act.v);
  const KvPages& kv = pass.cache.layer(size_t(layer.keys_of)).kv;

  project(attention, input_scale, pending, kind, raw_q, k, v, pass);
  pass.ops.rotate_and_store({.q = raw_q,
                             .k = owner ? k : View{},
                             .v = owner ? v : View{},
                             .q_scale = attention.q_scale,
                             .k_scale = attention.k_scale,
                             .eps = pass.config.eps,
                             .cos = pass.of(act.cos),
                             .sin = pass.of(act.sin),
                             .out_q = q,
                             .kv = kv,
                             .spans = pass.spans,
                             .norm_v = owner && !kind.values_are_keys});
  // A model without owners drafts on positions that another has stored.
  const bool own_rows = pass.config.owners > 0;
  pass.ops.attention({.q = q,
                      .kv = kv,
                      .out = attended,
                      .scale = 1,
                      .spans = pass.spans,
                      .k = own_rows ? k : View{},
                      .v = own_rows ? v : View{},
                      .window = kind.window});
  pass.ops.linear({.x = attended.reshaped({rows, q_size}),
                   .weight = attention.o,
                   .out = pass.of(pass.act.branch)});
}

// The branch of attention joins the residual, which the router, the dense MLP and the experts read.
void add_attention(const Layer& layer, const Pass& pass) {
  Activations& act = pass.act;
  AddBranchArgs args =
      join_branch(act.residual, act.inner_residual, layer.post_attention_scale, 1, pass);
  const NormOutput mlp_in{layer.mlp_scale, pass.of(act.normed)};
  if (!layer.moe) {
    args.outputs = {&mlp_in, 1};
    return pass.ops.add_branch(args);
  }
  const Moe& moe = *layer.moe;
  const float factor = 1 / std::sqrt(float(pass.config.hidden));
  const NormOutput outputs[] = {{moe.router_scale, pass.of(act.router_in), factor},
                                mlp_in,
                                {moe.input_scale, pass.of(act.expert_in)}};
  args.outputs = outputs;
  const LinearOutput choice{moe.router, pass.of(act.mlp.router_logits)};
  pass.ops.add_branch_linears({.branch = args, .outputs = {&choice, 1}});
}

// branch = mlp(normed); with experts also expert_out = experts(expert_in), chosen by their logits
void run_mlp(const Layer& layer, const Pass& pass) {
  Activations& act = pass.act;
  const GatedMlpArgs mlp{.x = pass.of(act.normed),
                         .mlp = layer.mlp,
                         .scratch = act.mlp.scratch.view,
                         .out = pass.of(act.branch),
                         .activation = kActivation};
  if (!layer.moe) return pass.ops.gated_mlp(mlp);
  const RoutedExpertsArgs experts{.logits = pass.of(act.mlp.router_logits),
                                  .experts = {.x = pass.of(act.expert_in),
                                              .ids = pass.of(act.mlp.expert_ids),
                                              .weights = pass.of(act.mlp.expert_weights),
                                              .experts = layer.moe->experts,
                                              .shared = kNoSharedExpert,
                                              .shared_gate = {},
                                              .scratch = act.mlp.scratch.view,
                                              .out = pass.of(act.expert_out),
                                              .activation = kActivation},
                                  .scales = layer.moe->expert_scales};
  pass.ops.mlp_and_experts({.mlp = mlp, .experts = experts});
}

AddBranchArgs join_mlp(const Layer& layer, const Tensor& to, const Pass& pass) {
  const float factor = layer.per_layer ? 1 : layer.factor;
  AddBranchArgs args = join_branch(pass.act.inner_residual, to, layer.post_mlp_scale, factor, pass);
  if (layer.moe) {
    args.beside = pass.of(pass.act.expert_out);
    args.branch_scale = layer.moe->dense_scale;
    args.beside_scale = layer.moe->output_scale;
  }
  return args;
}

// branch = projection (gelu(gate residual) * the layer's own embedding)
void use_per_layer_input(const PerLayerInput& input, size_t index, const Pass& pass) {
  const View gate = pass.of(pass.act.per_layer_gate);
  pass.ops.linear({.x = pass.of(pass.act.inner_residual), .weight = input.gate, .out = gate});
  pass.ops.gated_mul({.gate = gate,
                      .up = pass.of(pass.act.per_layer),
                      .out = gate,
                      .activation = kActivation,
                      .first_column = int64_t(index) * pass.config.ple_width});
  pass.ops.linear({.x = gate, .weight = input.projection, .out = pass.of(pass.act.branch)});
}

// Whether the backend reads the table of per-layer embeddings where it lies.
bool reads_table(const Pass& pass) { return pass.ops.memory().on_host(); }

// Otherwise the step's rows of it wait where the context will be: no format takes more room than
// that, and they have been read before it is written.
Weight fetched_rows(const PerLayerEmbedding& weights, const Pass& pass) {
  WeightInfo info = weights.table.weight.info;
  info.out = pass.rows;
  return plain_weight(info, pass.of(pass.act.per_layer_context).data);
}

// What every layer will add of its own: from the tokens, and from the embeddings in the residual.
void embed_per_layer(const PerLayerEmbedding& weights, const View& ids, const Pass& pass) {
  const Config& config = pass.config;
  const View tokens = pass.of(pass.act.per_layer), context = pass.of(pass.act.per_layer_context);
  const bool in_place = reads_table(pass);
  pass.ops.embed({.ids = in_place ? ids : View{},
                  .table = in_place ? weights.table.weight : fetched_rows(weights, pass),
                  .out = tokens,
                  .factor = std::sqrt(float(config.ple_width))});
  pass.ops.linear({.x = pass.of(pass.act.residual), .weight = weights.projection, .out = context});
  // The context is divided by sqrt(hidden) before it is normalised, which only eps can notice.
  const Shape parts{pass.rows * int64_t(config.layers.size()), config.ple_width};
  pass.ops.rms_norm({.x = context.reshaped(parts),
                     .scale = weights.scale,
                     .out = tokens.reshaped(parts),
                     .eps = config.eps * float(config.hidden),
                     .add = true,
                     .factor = 1 / std::numbers::sqrt2_v<float>});
}

void run_layer(const Layer& layer, size_t index, Pending& pending, const Pass& pass) {
  Activations& act = pass.act;
  attend(layer.attention, layer.input_scale, pending, pass.config.layers[index], pass);
  add_attention(layer, pass);
  run_mlp(layer, pass);
  if (layer.per_layer) {
    pass.ops.add_branch(join_mlp(layer, act.inner_residual, pass));
    use_per_layer_input(*layer.per_layer, index, pass);
    pending =
        join_branch(act.inner_residual, act.residual, layer.per_layer->scale, layer.factor, pass);
  } else {
    pending = join_mlp(layer, act.residual, pass);
  }
}

// The layers after the last owner leave nothing in the cache, so that only rows whose logits are
// wanted go through them. With a coded cache all rows do: a row reads those beside it uncoded. So
// they do in short steps that are recorded, in which there are no other spans than the step's.
Pass narrowed_to(const OutputRows& outputs, const Pass& pass) {
  if (outputs.count == pass.rows || pass.cache.coded() || pass.ops.records(pass.rows)) return pass;
  std::vector<Span>& spans = pass.act.output_spans;
  narrow(pass.spans, outputs, spans);
  return {pass.config, pass.ops, pass.cache, pass.act, spans, outputs.first, outputs.count};
}

}  // namespace

void prepare_rotation(const Pass& pass) {
  for (AttentionBuffers& kind : pass.act.kinds)
    pass.ops.rope_table({.frequencies = kind.frequencies.view,
                         .scale = 1,
                         .cos = pass.of(kind.cos),
                         .sin = pass.of(kind.sin),
                         .spans = pass.spans});
}

void fetch_per_layer(const PerLayerEmbedding& weights, std::span<const int32_t> ids,
                     const Pass& pass) {
  check(int64_t(ids.size()) == pass.rows, "a step of ", pass.rows, " rows with ", ids.size(),
        " ids on the host");
  if (!reads_table(pass))
    weights.table.upload(ids, pass.ops.memory(), fetched_rows(weights, pass).values.data);
}

void cover_layers(const Config& config, StepLimits& limits) {
  cover(config, limits);
  limits.q_heads = std::max(limits.q_heads, config.q_heads);
  limits.widest_input = std::max(limits.widest_input, config.widest_mlp());
  for (const KindConfig& kind : config.kinds) {
    limits.head_dim = std::max(limits.head_dim, kind.head_dim);
    limits.widest_input = std::max(limits.widest_input, config.q_heads * kind.head_dim);
  }
}

void run_layers(std::span<const Layer> layers, size_t begin, size_t end, const Pass& pass) {
  Pending pending;
  for (size_t i = begin; i < end; ++i) run_layer(layers[i], i, pending, pass);
  if (pending) pass.ops.add_branch(*pending);
}

void forward(const Weights& weights, const Step& step, const Pass& pass) {
  const Config& config = pass.config;
  prepare_rotation(pass);
  pass.ops.embed({.ids = step.ids,
                  .table = weights.embedding,
                  .out = pass.of(pass.act.residual),
                  .factor = config.embedding_factor()});
  if (weights.per_layer) embed_per_layer(*weights.per_layer, step.ids, pass);
  run_layers(weights.layers, 0, size_t(config.owners), pass);
  const OutputRows outputs = output_rows(step.outputs);
  if (outputs.count == 0) return;
  const Pass rest = narrowed_to(outputs, pass);
  run_layers(weights.layers, size_t(config.owners), weights.layers.size(), rest);
  const View normed = step.hidden.empty() ? pass.act.normed.view : step.hidden;
  pass.ops.rms_norm({.x = pass.act.residual.view.slice(outputs.first, outputs.count),
                     .scale = weights.final_scale,
                     .out = normed.slice(outputs.first, outputs.count),
                     .eps = config.eps});
  score(pass.ops, normed, outputs, weights.head, {step.logits, step.peaks, config.soft_cap});
}

}  // namespace slip::gemma4
