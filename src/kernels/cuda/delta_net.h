// The delta rule as kernels take it.
#pragma once

#include "kernels/args.h"
#include "kernels/cuda/device/spans.h"

namespace slip {

struct DeltaNetParams {
  const float* qkv;
  const float* a;
  const float* b;
  const float* rate;
  const float* dt_bias;
  float* state;
  float* record_keys;
  float* record_deltas;
  float* record_decays;
  float* out;
  const DeviceSpan* spans;
  int32_t key_heads, value_heads, key_dim, value_dim, record_rows;
  float query_scale;
};

DeltaNetParams delta_net_params(const DeltaNetArgs& args, const DeviceSpan* spans);

}  // namespace slip
