#include "models/qwen3_5/forward.h"

#include <cmath>

namespace slip::qwen3_5 {
namespace {

// residual += o (attention(q, k, v) * sigmoid(gate))
void attend(const AttentionWeights& attention, const RmsNormArgs& norm, size_t cache_index,
            const Pass& pass) {
  AttentionBuffers& act = pass.act.attention;
  const int64_t rows = pass.rows;
  const AttentionConfig& c = pass.config.attention;
  const View q_and_gate = pass.of(act.projected);
  const View k = pass.of(act.k), v = pass.of(act.v);
  const KvPages& kv = pass.cache.layer(cache_index).kv;

  const LinearOutput projections[] = {
      {attention.q, q_and_gate.reshaped({rows, c.q_heads * 2 * c.head_dim})},
      {attention.k, k.reshaped({rows, c.kv_heads * c.head_dim})},
      {attention.v, v.reshaped({rows, c.kv_heads * c.head_dim})}};
  pass.ops.norm_linears({.norm = norm, .outputs = projections});
  pass.ops.rotate_and_store({.q = q_and_gate,
                             .k = k,
                             .v = v,
                             .q_scale = attention.q_scale,
                             .k_scale = attention.k_scale,
                             .eps = pass.config.eps,
                             .cos = pass.of(act.cos),
                             .sin = pass.of(act.sin),
                             .out_q = pass.of(act.q),
                             .kv = kv,
                             .spans = pass.spans});
  // Every row has stored its key; only wanted ones need to look at any.
  if (pass.wanted.count == 0) return;
  const bool narrowed = !pass.wanted_spans.empty();
  const auto looking = [&](const Tensor& tensor) {
    return narrowed ? pass.wanted_of(tensor) : pass.of(tensor);
  };
  pass.ops.attention({.q = looking(act.q),
                      .kv = kv,
                      .out = looking(act.attended),
                      .scale = 1.0f / std::sqrt(float(c.head_dim)),
                      .spans = narrowed ? pass.wanted_spans : pass.spans,
                      .k = looking(act.k),
                      .v = looking(act.v)});
  pass.ops.gate_heads_linear({.x = pass.wanted_of(act.attended),
                              .q_and_gate = pass.wanted_of(act.projected),
                              .weight = attention.o,
                              .out = pass.wanted_of(pass.act.residual)});
}

// residual += out (norm(delta_rule(conv(qkv))) * silu(z))
void delta_net(const DeltaNet& delta, const RmsNormArgs& norm, size_t cache_index,
               const Pass& pass) {
  Activations& act = pass.act;
  const DeltaNetConfig& c = pass.config.delta_net;
  const View qkv = pass.of(act.qkv), z = pass.of(act.z);
  const View a = pass.of(act.a), b = pass.of(act.b);
  const Cache::Layer& cached = pass.cache.layer(cache_index);

  const LinearOutput projections[] = {{delta.qkv, qkv},
                                      {delta.z, z.reshaped({pass.rows, c.value_size()})},
                                      {delta.a, a},
                                      {delta.b, b}};
  pass.ops.norm_linears({.norm = norm, .outputs = projections});
  pass.ops.gated_delta_net({.qkv = qkv,
                            .conv = delta.conv,
                            .tail = cached.conv_tail,
                            .convolved = pass.of(act.qkv_conv),
                            .a = a,
                            .b = b,
                            .rate = delta.rate,
                            .dt_bias = delta.dt_bias,
                            .state = cached.state,
                            .record = cached.record,
                            .z = z,
                            .norm_scale = delta.norm_scale,
                            .mixed = pass.of(act.delta_out),
                            .eps = pass.config.eps,
                            .weight = delta.out,
                            .out = pass.of(act.residual),
                            .key_heads = c.key_heads,
                            .spans = pass.spans});
}

// residual += mlp(norm(residual))
void feed_forward(const GatedMlp& mlp, const RmsNormArgs& norm, const Pass& pass) {
  const View scratch = pass.act.mlp.scratch.view, residual = pass.wanted_of(pass.act.residual);
  pass.ops.rms_norm(norm);
  pass.ops.gated_mlp({.x = norm.out, .mlp = mlp, .scratch = scratch, .out = residual, .add = true});
}

// residual += experts(norm(residual)) + sigmoid(shared_gate) * shared(norm(residual))
void feed_forward(const Moe& moe, const RmsNormArgs& norm, const Pass& pass) {
  Activations& act = pass.act;
  const View logits = pass.wanted_of(act.mlp.router_logits);
  const View shared_gate = pass.wanted_of(act.shared_gate);

  const LinearOutput gates[] = {{moe.router, logits}, {moe.shared_gate, shared_gate}};
  pass.ops.norm_linears({.norm = norm, .outputs = gates});
  pass.ops.routed_experts({.logits = logits,
                           .experts = {.x = norm.out,
                                       .ids = pass.wanted_of(act.mlp.expert_ids),
                                       .weights = pass.wanted_of(act.mlp.expert_weights),
                                       .experts = moe.experts,
                                       .shared = moe.shared,
                                       .shared_gate = shared_gate,
                                       .scratch = act.mlp.scratch.view,
                                       .out = pass.wanted_of(act.residual),
                                       .add = true}});
}

}  // namespace

void prepare_rotation(const Pass& pass) {
  const AttentionBuffers& act = pass.act.attention;
  pass.ops.rope_table({.frequencies = act.frequencies.view,
                       .scale = rope_scale(pass.config),
                       .cos = pass.of(act.cos),
                       .sin = pass.of(act.sin),
                       .spans = pass.spans});
}

void decoder_layer(const Layer& layer, size_t cache_index, const Pass& pass) {
  const RmsNormArgs input_norm{.x = pass.of(pass.act.residual),
                               .scale = layer.input_scale,
                               .out = pass.of(pass.act.normed),
                               .eps = pass.config.eps};
  if (const auto* attention = std::get_if<AttentionWeights>(&layer.mixer))
    attend(*attention, input_norm, cache_index, pass);
  else
    delta_net(std::get<DeltaNet>(layer.mixer), input_norm, cache_index, pass);
  if (pass.wanted.count == 0) return;
  const RmsNormArgs post_norm{.x = pass.wanted_of(pass.act.residual),
                              .scale = layer.post_scale,
                              .out = pass.wanted_of(pass.act.normed),
                              .eps = pass.config.eps};
  std::visit([&](const auto& mlp) { feed_forward(mlp, post_norm, pass); }, layer.mlp);
}

void forward(const Weights& weights, const Step& step, const Pass& pass) {
  const View residual = pass.of(pass.act.residual);
  const View normed = step.hidden.empty() ? pass.of(pass.act.normed) : step.hidden;
  prepare_rotation(pass);
  pass.ops.embed({.ids = step.ids, .table = weights.embedding, .out = residual});
  for (size_t i = 0; i < weights.layers.size(); ++i) decoder_layer(weights.layers[i], i, pass);
  pass.ops.rms_norm(
      {.x = residual, .scale = weights.final_scale, .out = normed, .eps = pass.config.eps});
  score(pass.ops, normed, output_rows(step.outputs), weights.head, {step.logits, step.peaks});
}

}  // namespace slip::qwen3_5
