// What each layer of a model has to remember, as data. The cache is built from a list of these.
#pragma once

#include <cstdint>
#include <variant>

namespace slip {

// Keys and values of every position.
struct PagedKvSpec {
  int64_t kv_heads;
  int64_t head_dim;
};

// Keys and values of the last positions: a row sees `window` of them, its own included.
struct WindowKvSpec {
  int64_t kv_heads;
  int64_t head_dim;
  int64_t window;
};

// Those of an earlier layer, which this one only reads.
struct SharedKvSpec {
  int64_t layer;
};

// A matrix per value head, and the raw inputs that the causal convolution still needs.
struct RecurrentSpec {
  int64_t key_heads;
  int64_t value_heads;
  int64_t key_dim;
  int64_t value_dim;
  int64_t conv_tail;  // inputs remembered: convolution width - 1
  int64_t conv_channels;
};

using CacheSpec = std::variant<PagedKvSpec, WindowKvSpec, SharedKvSpec, RecurrentSpec>;

}  // namespace slip
