#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/ref/kv_index.h"
#include "kernels/ref/ref_ops_impl.h"

namespace slip {
namespace {

// One query head over positions [0, length).
void attend(const AttentionArgs& args, const Span& span, int64_t kv_head, int64_t length,
            const float* q, float* out) {
  const int64_t head_dim = args.q.shape[2];
  std::vector<double> head(size_t(head_dim), 0.0);
  std::vector<double> scores(size_t(length), 0.0);
  for (int64_t p = 0; p < length; ++p) {
    read_kv(args.kv.keys, kv_index(args.kv, span, p, kv_head), head);
    double dot = 0;
    for (int64_t i = 0; i < head_dim; ++i) dot += double(q[i]) * head[size_t(i)];
    scores[size_t(p)] = dot * double(args.scale);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) {
    score = std::exp(score - largest);
    sum += score;
  }
  std::vector<double> mixed(size_t(head_dim), 0.0);
  for (int64_t p = 0; p < length; ++p) {
    read_kv(args.kv.values, kv_index(args.kv, span, p, kv_head), head);
    for (int64_t i = 0; i < head_dim; ++i) mixed[size_t(i)] += scores[size_t(p)] * head[size_t(i)];
  }
  for (int64_t i = 0; i < head_dim; ++i) out[i] = float(mixed[size_t(i)] / sum);
}

}  // namespace

void RefOps::attention(const AttentionArgs& args) {
  const Dims dims = check_shapes(args);
  const int64_t q_heads = dims["q_heads"], head_dim = dims["head_dim"];
  const int64_t heads_per_kv = q_heads / dims["kv_heads"];
  for (const Span& span : args.spans) {
    for (int64_t t = 0; t < span.rows; ++t) {
      for (int64_t h = 0; h < q_heads; ++h) {
        const int64_t at = ((span.first_row + t) * q_heads + h) * head_dim;
        attend(args, span, h / heads_per_kv, span.start + t + 1, args.q.f32() + at,
               args.out.f32() + at);
      }
    }
  }
}

}  // namespace slip
