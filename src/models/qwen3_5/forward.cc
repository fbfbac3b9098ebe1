#include "models/qwen3_5/forward.h"

#include <cmath>

namespace slip::qwen3_5 {
namespace {

// residual += o (attention(q, k, v) * sigmoid(gate))
void mix(const AttentionWeights& attention, const RmsNormArgs& norm, size_t cache_index,
         Pass& pass) {
  AttentionBuffers& act = pass.act.attention;
  const int64_t rows = pass.rows;
  const AttentionConfig& c = pass.config.attention;
  const View q_and_gate = act.projected.view.first(rows);
  const View k = act.k.view.first(rows), v = act.v.view.first(rows);
  const View attended = act.attended.view.first(rows);
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
                             .cos = act.cos.view.first(rows),
                             .sin = act.sin.view.first(rows),
                             .out_q = act.q.view.first(rows),
                             .kv = kv,
                             .spans = pass.spans});
  pass.ops.attention({.q = act.q.view.first(rows),
                      .kv = kv,
                      .out = attended,
                      .scale = 1.0f / std::sqrt(float(c.head_dim)),
                      .spans = pass.spans,
                      .k = k,
                      .v = v});
  pass.ops.gate_heads({.x = attended, .q_and_gate = q_and_gate});
  pass.ops.linear({.x = attended.reshaped({rows, c.q_heads * c.head_dim}),
                   .weight = attention.o,
                   .out = pass.act.residual.view.first(rows),
                   .add = true});
}

// residual += out (norm(delta_rule(conv(qkv))) * silu(z))
void mix(const DeltaNet& delta, const RmsNormArgs& norm, size_t cache_index, Pass& pass) {
  Activations& act = pass.act;
  const int64_t rows = pass.rows;
  const DeltaNetConfig& c = pass.config.delta_net;
  const View qkv = act.qkv.view.first(rows), qkv_conv = act.qkv_conv.view.first(rows);
  const View z = act.z.view.first(rows);
  const View a = act.a.view.first(rows), b = act.b.view.first(rows);
  const View mixed = act.delta_out.view.first(rows);
  const Cache::Layer& cached = pass.cache.layer(cache_index);

  const LinearOutput projections[] = {
      {delta.qkv, qkv}, {delta.z, z.reshaped({rows, c.value_size()})}, {delta.a, a}, {delta.b, b}};
  pass.ops.norm_linears({.norm = norm, .outputs = projections});
  pass.ops.causal_conv({.x = qkv,
                        .weight = delta.conv,
                        .tail = cached.conv_tail,
                        .out = qkv_conv,
                        .spans = pass.spans});
  pass.ops.delta_net({.qkv = qkv_conv,
                      .a = a,
                      .b = b,
                      .rate = delta.rate,
                      .dt_bias = delta.dt_bias,
                      .state = cached.state,
                      .record = cached.record,
                      .out = mixed,
                      .key_heads = c.key_heads,
                      .spans = pass.spans});
  pass.ops.gated_rms_norm(
      {.x = mixed, .gate = z, .scale = delta.norm_scale, .out = mixed, .eps = pass.config.eps});
  pass.ops.linear({.x = mixed.reshaped({rows, c.value_size()}),
                   .weight = delta.out,
                   .out = act.residual.view.first(rows),
                   .add = true});
}

void feed_forward(const GatedMlp& mlp, const RmsNormArgs& norm, Pass& pass) {
  Activations& act = pass.act;
  pass.ops.rms_norm(norm);
  pass.ops.gated_mlp({.x = norm.out,
                      .mlp = mlp,
                      .scratch = act.mlp.scratch.view,
                      .out = act.residual.view.first(pass.rows)});
}

void feed_forward(const Moe& moe, const RmsNormArgs& norm, Pass& pass) {
  Activations& act = pass.act;
  const int64_t rows = pass.rows;
  const View logits = act.mlp.router_logits.view.first(rows);
  const View ids = act.mlp.expert_ids.view.first(rows);
  const View weights = act.mlp.expert_weights.view.first(rows);
  const View shared_gate = act.shared_gate.view.first(rows);

  const LinearOutput gates[] = {{moe.router, logits}, {moe.shared_gate, shared_gate}};
  pass.ops.rms_norm(norm);
  pass.ops.linears({.x = norm.out, .outputs = gates});
  pass.ops.route({.logits = logits, .ids = ids, .weights = weights});
  pass.ops.experts({.x = norm.out,
                    .ids = ids,
                    .weights = weights,
                    .experts = moe.experts,
                    .shared = moe.shared,
                    .shared_gate = shared_gate,
                    .scratch = act.mlp.scratch.view,
                    .out = act.residual.view.first(rows)});
}

}  // namespace

void prepare_rotation(Pass& pass) {
  const AttentionBuffers& act = pass.act.attention;
  pass.ops.rope_table({.frequencies = act.frequencies.view,
                       .scale = rope_scale(pass.config),
                       .cos = act.cos.view.first(pass.rows),
                       .sin = act.sin.view.first(pass.rows),
                       .spans = pass.spans});
}

void decoder_layer(const Layer& layer, size_t cache_index, Pass& pass) {
  const auto norm = [&](const View& scale) {
    return RmsNormArgs{.x = pass.act.residual.view.first(pass.rows),
                       .scale = scale,
                       .out = pass.act.normed.view.first(pass.rows),
                       .eps = pass.config.eps};
  };
  const RmsNormArgs input_norm = norm(layer.input_scale), post_norm = norm(layer.post_scale);
  std::visit([&](const auto& mixer) { mix(mixer, input_norm, cache_index, pass); }, layer.mixer);
  std::visit([&](const auto& mlp) { feed_forward(mlp, post_norm, pass); }, layer.mlp);
}

}  // namespace slip::qwen3_5
