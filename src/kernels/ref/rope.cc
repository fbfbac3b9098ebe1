#include <cmath>
#include <vector>

#include "kernels/kv_index.h"
#include "kernels/ref/kv_codes.h"
#include "kernels/ref/plain_kv.h"
#include "kernels/ref/ref_ops_impl.h"
#include "kernels/ref/scalar.h"

namespace slip {
namespace {

struct HeadNorm {
  const float* scale;  // null: 1
  double eps;
};

std::vector<double> normalise(const float* x, int64_t dim, const HeadNorm& norm) {
  const double inverse = inverse_rms(x, dim, norm.eps);
  std::vector<double> u(size_t(dim), 0.0);
  for (int64_t i = 0; i < dim; ++i)
    u[size_t(i)] = double(x[i]) * inverse * (norm.scale ? double(norm.scale[i]) : 1.0);
  return u;
}

// Norm, then rotation of the first 2 * pairs dimensions.
std::vector<double> normalise_and_rotate(const float* x, int64_t dim, const HeadNorm& norm,
                                         const float* cos, const float* sin, int64_t pairs) {
  const std::vector<double> u = normalise(x, dim, norm);
  std::vector<double> rotated = u;
  for (int64_t j = 0; j < pairs; ++j) {
    const double low = u[size_t(j)], high = u[size_t(j + pairs)];
    rotated[size_t(j)] = low * double(cos[j]) - high * double(sin[j]);
    rotated[size_t(j + pairs)] = high * double(cos[j]) + low * double(sin[j]);
  }
  return rotated;
}

// out <- x, Hadamard-rotated and rounded to bf16, as a coded cache keeps its newest rows.
void rotate_for_codes(std::vector<double> x, KvSide side, float* out) {
  turbo_rotate(x, side);
  for (size_t i = 0; i < x.size(); ++i) out[i] = bf16_to_float(float_to_bf16(float(x[i])));
}

}  // namespace

void RefOps::rope_table(const RopeTableArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t pairs = dims["pairs"];
  for (const Span& span : args.spans) {
    for (int64_t t = 0; t < span.rows; ++t) {
      const int64_t row = span.first_row + t;
      for (int64_t j = 0; j < pairs; ++j) {
        const double angle = double(span.start + t) * double(args.frequencies.f32()[j]);
        args.cos.f32()[row * pairs + j] = float(std::cos(angle) * double(args.scale));
        args.sin.f32()[row * pairs + j] = float(std::sin(angle) * double(args.scale));
      }
    }
  }
}

void RefOps::rotate_and_store(const RotateAndStoreArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t q_heads = dims["q_heads"], kv_heads = args.k.empty() ? 0 : dims["kv_heads"];
  const int64_t head_dim = dims["head_dim"], pairs = dims["pairs"];
  const bool coded = !args.k.empty() && args.kv.recipe.coded();
  for (const Span& span : args.spans) {
    for (int64_t t = 0; t < span.rows; ++t) {
      const int64_t row = span.first_row + t;
      const float* cos = args.cos.f32() + row * pairs;
      const float* sin = args.sin.f32() + row * pairs;
      for (int64_t h = 0; h < q_heads; ++h) {
        const float* q = args.q.f32() + (row * q_heads + h) * dims["q_stride"];
        const auto rotated =
            normalise_and_rotate(q, head_dim, {args.q_scale.f32(), args.eps}, cos, sin, pairs);
        for (int64_t i = 0; i < head_dim; ++i)
          args.out_q.f32()[(row * q_heads + h) * head_dim + i] = float(rotated[size_t(i)]);
      }
      for (int64_t h = 0; h < kv_heads; ++h) {
        float* k = args.k.f32() + (row * kv_heads + h) * head_dim;
        float* v = args.v.f32() + (row * kv_heads + h) * head_dim;
        const auto key =
            normalise_and_rotate(k, head_dim, {args.k_scale.f32(), args.eps}, cos, sin, pairs);
        const std::vector<double> value = args.norm_v ? normalise(v, head_dim, {nullptr, args.eps})
                                                      : std::vector<double>(v, v + head_dim);
        if (coded) {
          rotate_for_codes(key, KvSide::keys, k);
          rotate_for_codes(value, KvSide::values, v);
        } else {
          const int64_t vector = plain_vector(args.kv, span, span.start + t, h);
          write_plain(args.kv.keys, vector, key);
          write_plain(args.kv.values, vector, value);
        }
      }
    }
    if (coded) {
      store_rows(coded_key_side(args), span);
      store_rows(coded_value_side(args), span);
    }
  }
}

}  // namespace slip
