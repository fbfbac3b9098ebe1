#include "convert/capturing_ops.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "convert/descent_loops.h"

namespace slip {
namespace {

constexpr size_t kWaitingRows = 256;
constexpr int64_t kGramRowsPerItem = 32;  // of the matrix of products

// Rows that an expert is asked about, and what its answer counts for.
using Members = std::vector<std::pair<int64_t, float>>;

// On the host.
template <class Value>
std::vector<Value> values_of(const View& view, Memory& memory) {
  std::vector<Value> values(view.bytes() / sizeof(Value));
  memory.download(values.data(), view.data, view.bytes());
  return values;
}

bool same(const WeightInfo& a, const WeightInfo& b) {
  return a.format == b.format && a.out == b.out && a.in == b.in && a.group == b.group;
}

}  // namespace

void CapturingOps::run_step(const StepKey& key, std::span<const Span> spans, const StepBody& body) {
  StepKey too_long = key;  // to be recorded
  too_long.rows = std::numeric_limits<int64_t>::max();
  backend().run_step(too_long, spans, body);
}

void CapturingOps::reserve(const StepLimits& limits) {
  backend().reserve(limits);
  if (limits.experts == 0) return;
  const auto values = [&](int64_t width) { return size_t(limits.rows * width) * sizeof(float); };
  expert_rows_ = Buffer(memory(), values(limits.hidden));
  expert_sums_ = Buffer(memory(), values(limits.hidden));
  mlp_scratch_ = Buffer(memory(), values(2 * limits.expert_width));
}

Weight CapturingOps::pack(const Weight& plain, std::span<std::byte> storage) {
  {
    const std::lock_guard lock(mutex_);
    packed_[storage.data()] = {plain.info, storage};
  }
  return backend().pack(plain, storage);
}

// Tables place matrices one after the other in one buffer, in the order of their list; what is not
// packed (norms and other vectors) has no place here and is passed over.
void CapturingOps::name_weights(std::span<const PlacedWeight> placed) {
  auto next = packed_.begin();
  for (const PlacedWeight& weight : placed) {
    if (next == packed_.end()) break;
    if (!same(next->second.info, weight.info)) continue;
    places_[weight.name] = next->first;
    ++next;
  }
  check(next == packed_.end(), "name_weights: matrices without a name");
}

void CapturingOps::watch(const std::vector<std::string>& modules, const std::string& layer) {
  watched_.clear();
  captures_.clear();
  last_input_ = nullptr;
  last_capture_.reset();
  for (const std::string& module : modules) {
    const auto place = places_.find(module);
    check(place != places_.end(), "watch: no matrix ", module);
    watched_.insert(place->second);
  }
  layer_.clear();
  for (const auto& [name, place] : places_)
    if (layer.empty() || name == layer || name.starts_with(layer + ".")) layer_.insert(place);
}

void CapturingOps::meet(const Weight& weight) {
  if (layer_.contains(weight.values.data))
    entered_ = true;
  else
    ended_ |= entered_;
}

const Gram* CapturingOps::gram_of(const std::string& module) {
  const auto found = captures_.find(places_.at(module));
  if (found == captures_.end()) return nullptr;
  Capture& capture = *found->second;
  Gram& gram = capture.gram;
  if (!capture.waiting.empty()) add_waiting(capture);
  // Only the part above the diagonal was summed up.
  for (int64_t i = 0; i < gram.inputs; ++i)
    for (int64_t j = 0; j < i; ++j)
      gram.products[size_t(i * gram.inputs + j)] = gram.products[size_t(j * gram.inputs + i)];
  return &gram;
}

void CapturingOps::replace(const std::string& module, const Weight& plain) {
  const Packed& packed = packed_.at(places_.at(module));
  check(same(packed.info, plain.info), "replace: ", module, " has another format");
  backend().pack(plain, packed.storage);
}

void CapturingOps::capture(const View& x, const Weight& weight) {
  const std::byte* place = weight.values.data;
  auto found = captures_.find(place);
  if (found == captures_.end()) {
    // Gate and up, or queries, keys and values: the same rows once more.
    const bool shares = last_input_ == x.data && last_capture_;
    found = captures_.emplace(place, shares ? last_capture_ : std::make_shared<Capture>()).first;
  }
  const std::shared_ptr<Capture>& capture = found->second;
  const bool again = last_input_ == x.data && last_capture_ == capture;
  last_input_ = x.data;
  last_capture_ = capture;
  if (again) return;
  Gram& gram = capture->gram;
  if (gram.products.empty()) {
    gram.inputs = x.shape[1];
    gram.products.resize(size_t(gram.inputs * gram.inputs));
    capture->waiting.reserve(kWaitingRows * size_t(gram.inputs));
  }
  const std::vector<float> rows = values_of<float>(x, memory());
  for (int64_t row = 0; row < x.shape[0]; ++row) {
    const float* values = rows.data() + row * gram.inputs;
    capture->waiting.insert(capture->waiting.end(), values, values + gram.inputs);
    ++gram.rows;
    if (capture->waiting.size() == kWaitingRows * size_t(gram.inputs)) add_waiting(*capture);
  }
}

void CapturingOps::add_waiting(Capture& capture) {
  Gram& gram = capture.gram;
  const auto inputs = size_t(gram.inputs);
  const size_t rows = (capture.waiting.size() / inputs + 7) / 8 * 8;  // the loop takes eights
  capture.waiting.resize(rows * inputs, 0.0f);
  const DescentLoops& loops = descent_loops();
  pool_.run((gram.inputs + kGramRowsPerItem - 1) / kGramRowsPerItem, [&](int64_t item, int) {
    const auto begin = size_t(item * kGramRowsPerItem);
    loops.gram(gram.products.data(), capture.waiting.data(),
               {.rows = rows,
                .inputs = inputs,
                .begin = begin,
                .end = std::min(begin + size_t(kGramRowsPerItem), inputs)});
  });
  capture.waiting.clear();
}

void CapturingOps::around(const char*, FunctionRef<void()> call) {
  last_input_ = nullptr;
  if (!ended_) call();
}

void CapturingOps::embed(const EmbedArgs& args) {
  entered_ = ended_ = false;
  ForwardingOps::embed(args);
}

void CapturingOps::linear(const LinearArgs& args) {
  meet(args.weight);
  if (ended_) return;
  if (watches(args.weight)) {
    capture(args.x, args.weight);
  } else {
    last_input_ = nullptr;
  }
  backend().linear(args);
}

void CapturingOps::linears(const LinearsArgs& args) {
  last_input_ = nullptr;
  meet(args.outputs.front().weight);
  if (ended_) return;
  for (const LinearOutput& output : args.outputs)
    if (watches(output.weight)) capture(args.x, output.weight);
  backend().linears(args);
}

void CapturingOps::gated_mlp(const GatedMlpArgs& args) {
  last_input_ = nullptr;
  meet(args.mlp.gate);
  if (ended_) return;
  if (watches(args.mlp)) {
    // Its parts, so that they come by here.
    Ops::gated_mlp(args);  // NOLINT(bugprone-parent-virtual-call)
  } else {
    backend().gated_mlp(args);
  }
}

void CapturingOps::experts(const ExpertsArgs& args) {
  last_input_ = nullptr;
  meet(args.experts.front().gate);
  if (ended_) return;
  const bool any = std::any_of(args.experts.begin(), args.experts.end(),
                               [&](const GatedMlp& mlp) { return watches(mlp); });
  if (any || watches(args.shared)) {
    watched_experts(args);
  } else {
    backend().experts(args);
  }
}

// Expert by expert with all of its rows, where the default composition goes row by row.
void CapturingOps::watched_experts(const ExpertsArgs& args) {
  const int64_t rows = args.x.shape[0], hidden = args.x.shape[1], top_k = args.ids.shape[1];
  const std::vector<float> x = values_of<float>(args.x, memory());
  const std::vector<float> weights = values_of<float>(args.weights, memory());
  const std::vector<int32_t> ids = values_of<int32_t>(args.ids, memory());
  std::vector<float> sums(size_t(rows * hidden));
  if (args.add) sums = values_of<float>(args.out, memory());
  std::vector<float> part;
  const auto run = [&](const GatedMlp& mlp, const Members& members) {
    if (members.empty()) return;
    const auto count = int64_t(members.size());
    part.resize(size_t(count * hidden));
    for (int64_t i = 0; i < count; ++i)
      std::copy_n(x.data() + members[size_t(i)].first * hidden, hidden, part.data() + i * hidden);
    const View inputs = expert_rows_.view(DType::f32, {count, hidden});
    const View outputs = expert_sums_.view(DType::f32, {count, hidden});
    memory().upload(inputs.data, part.data(), inputs.bytes());
    gated_mlp({.x = inputs,
               .mlp = mlp,
               .scratch = mlp_scratch_.view(DType::f32, {2, count, mlp.gate.info.out}),
               .out = outputs,
               .activation = args.activation,
               .add = false});
    memory().download(part.data(), outputs.data, outputs.bytes());
    for (int64_t i = 0; i < count; ++i) {
      float* out = sums.data() + members[size_t(i)].first * hidden;
      for (int64_t j = 0; j < hidden; ++j)
        out[j] += members[size_t(i)].second * part[size_t(i * hidden + j)];
    }
  };
  std::vector<Members> members(args.experts.size());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = row * top_k; i < (row + 1) * top_k; ++i)
      members[size_t(ids[size_t(i)])].emplace_back(row, weights[size_t(i)]);
  Members all;
  if (!args.shared.gate.empty()) {
    const std::vector<float> gates = values_of<float>(args.shared_gate, memory());
    for (int64_t row = 0; row < rows; ++row)
      all.emplace_back(row, 1.0f / (1.0f + std::exp(-gates[size_t(row)])));
  }
  for (size_t expert = 0; expert < members.size(); ++expert)
    run(args.experts[expert], members[expert]);
  run(args.shared, all);
  memory().upload(args.out.data, sums.data(), args.out.bytes());
}

}  // namespace slip
