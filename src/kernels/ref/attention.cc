#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/kv_index.h"
#include "kernels/ref/kv_codes.h"
#include "kernels/ref/plain_kv.h"
#include "kernels/ref/ref_ops_impl.h"

namespace slip {
namespace {

// The row at `position` of a span, and one of its kv heads.
struct Reader {
  const Span& span;
  int64_t position;
  int64_t kv_head;
};

void read_key(const AttentionArgs& args, const Reader& reader, int64_t p, std::span<double> key) {
  const auto& [span, position, kv_head] = reader;
  if (args.kv.recipe.coded())
    read_position(coded_key_side(args), span, {position, p, kv_head}, key);
  else
    read_plain(args.kv.keys, plain_vector(args.kv, span, p, kv_head), key);
}

void read_value(const AttentionArgs& args, const Reader& reader, int64_t p,
                std::span<double> value) {
  const auto& [span, position, kv_head] = reader;
  if (args.kv.recipe.coded())
    read_position(coded_value_side(args), span, {position, p, kv_head}, value);
  else
    read_plain(args.kv.values, plain_vector(args.kv, span, p, kv_head), value);
}

// One query head over the positions it sees. Coded keys and values are rotated: so is the query,
// and the result is turned back.
void attend(const AttentionArgs& args, const Reader& reader, const float* q, float* out) {
  const size_t head_dim = size_t(args.q.shape[2]);
  const bool coded = args.kv.recipe.coded();
  std::vector<double> query(q, q + head_dim);
  if (coded) turbo_rotate(query, KvSide::keys);
  std::vector<double> head(head_dim, 0.0);
  const int64_t end = reader.position + 1;
  const int64_t begin = args.window > 0 ? std::max<int64_t>(0, end - args.window) : 0;
  std::vector<double> scores(size_t(end - begin), 0.0);
  for (size_t p = 0; p < scores.size(); ++p) {
    read_key(args, reader, begin + int64_t(p), head);
    double dot = 0;
    for (size_t i = 0; i < head_dim; ++i) dot += query[i] * head[i];
    scores[p] = dot * double(args.scale);
  }
  const double largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) {
    score = std::exp(score - largest);
    sum += score;
  }
  std::vector<double> mixed(head_dim, 0.0);
  for (size_t p = 0; p < scores.size(); ++p) {
    read_value(args, reader, begin + int64_t(p), head);
    for (size_t i = 0; i < head_dim; ++i) mixed[i] += scores[p] * head[i];
  }
  for (double& value : mixed) value /= sum;
  if (coded) turbo_unrotate(mixed, KvSide::values);
  for (size_t i = 0; i < head_dim; ++i) out[i] = float(mixed[i]);
}

}  // namespace

void RefOps::attention(const AttentionArgs& args) {
  const Dims dims = check_shapes(args);
  dims.check_all_pages(args.spans, args.kv);
  const int64_t q_heads = dims["q_heads"], head_dim = dims["head_dim"];
  const int64_t heads_per_kv = q_heads / dims["kv_heads"];
  for (const Span& span : args.spans) {
    for (int64_t t = 0; t < span.rows; ++t) {
      for (int64_t h = 0; h < q_heads; ++h) {
        const int64_t at = ((span.first_row + t) * q_heads + h) * head_dim;
        attend(args, {span, span.start + t, h / heads_per_kv}, args.q.f32() + at,
               args.out.f32() + at);
      }
    }
  }
}

}  // namespace slip
