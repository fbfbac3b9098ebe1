#include <algorithm>

#include "kernels/cuda/cuda_ops_impl.h"
#include "kernels/cuda/device/warp.cuh"
#include "kernels/cuda/experts.h"
#include "kernels/cuda/quads.cuh"
#include "kernels/dims.h"

namespace slip {
namespace {

// Memory of tables is taken in pieces of so many weights: 1 MB.
constexpr size_t kPieceWeights = (size_t{1} << 20) / sizeof(ExpertWeight);

bool same_slabs(const WeightInfo& a, const WeightInfo& b) {
  return in_slabs(device_format(a)) && device_format(a) == device_format(b) && a.group == b.group;
}

// What run_many_rows() can take.
bool suits_many_rows(const GatedMlp& mlp) {
  return same_slabs(mlp.gate.info, mlp.up.info) && in_slabs(device_format(mlp.down.info));
}

void check_expert(const GatedMlp& mlp, int64_t hidden, int64_t width) {
  const auto has = [](const Weight& weight, int64_t out, int64_t in) {
    return weight.info.out == out && weight.info.in == in;
  };
  check(has(mlp.gate, width, hidden) && has(mlp.up, width, hidden) && has(mlp.down, hidden, width),
        "experts: not all of one shape");
}

DeviceMlp device_mlp(const GatedMlp& mlp) {
  return {expert_weight(mlp.gate), expert_weight(mlp.up), expert_weight(mlp.down)};
}

InputForms forms_of(std::span<const ExpertWeight> weights) {
  InputForms forms;
  for (const ExpertWeight& weight : weights) forms.add(weight);
  return forms;
}

ExpertRow row_of(std::span<const ExpertWeight> weights) {
  if (weights.size() < 2) return {};
  const int64_t stride = weights[1].values - weights[0].values;
  ExpertWeight expected = weights[0];
  for (const ExpertWeight& weight : weights) {
    if (weight != expected) return {};
    expected.values += stride;
  }
  return {weights[0], stride};
}

const float* or_null(const View& view) { return view.empty() ? nullptr : view.f32(); }

// Whether run_few_rows() can choose the experts itself.
bool can_choose(const RoutedExpertsArgs& args) {
  const int64_t rows = args.logits.shape[0], experts = args.logits.shape[1];
  return rows <= kFewRows && experts <= kMostChoosable &&
         rows_of_quads(experts, {args.logits.f32()});
}

constexpr int kScaleThreads = 256;

// x[row] *= sigmoid(gates[row]); a block per row.
__global__ void scale_rows_kernel(float* x, const float* gates, int64_t width) {
  let_next_begin();
  wait_for_inputs();
  const float gate = sigmoid(gates[blockIdx.x]);
  x += blockIdx.x * width;
  for (int64_t i = threadIdx.x; i < width; i += kScaleThreads) x[i] *= gate;
}

}  // namespace

ExpertWeight expert_weight(const Weight& weight) {
  const DeviceWeight on_device = device_weight(weight);
  const std::byte* values = on_device.values;
  check(reinterpret_cast<uintptr_t>(values) % 16 == 0, "experts: a weight is not aligned");
  const auto* scales = static_cast<const std::byte*>(on_device.scales);
  return {.values = values,
          .scales_at = scales ? uint32_t((scales - values) / 256) : 0,
          .group = uint16_t(on_device.group),
          .format = on_device.format};
}

ExpertTables::~ExpertTables() {
  for (void* piece : pieces_) cudaFree(piece);
}

const ExpertTables::Table& ExpertTables::of(std::span<const GatedMlp> experts, cudaStream_t stream,
                                            Memory& memory) {
  std::vector<ExpertWeight>& now = current_;
  now.resize(kExpertMatrices * experts.size());
  for (size_t i = 0; i < experts.size(); ++i) {
    now[kGate * experts.size() + i] = expert_weight(experts[i].gate);
    now[kUp * experts.size() + i] = expert_weight(experts[i].up);
    now[kDown * experts.size() + i] = expert_weight(experts[i].down);
  }
  Table& table = tables_[experts.data()];
  if (table.host == now) return table;
  // What a table was made from may have gone, and something else have come to its place.
  cudaStreamCaptureStatus recording = cudaStreamCaptureStatusNone;
  cuda_check(cudaStreamIsCapturing(stream, &recording));
  check(recording == cudaStreamCaptureStatusNone, "experts: a recorded step met new weights");
  if (table.host.size() != now.size()) table.device = allocate(now.size());
  table.host = now;
  table.forms = forms_of(std::span(now).first(kDown * experts.size()));
  table.down_forms = forms_of(std::span(now).last(experts.size()));
  for (size_t i = 0; i < kExpertMatrices; ++i)
    table.rows[i] = row_of(std::span(now).subspan(i * experts.size(), experts.size()));
  memory.upload(reinterpret_cast<std::byte*>(table.device), now.data(),
                now.size() * sizeof(ExpertWeight));
  return table;
}

ExpertWeight* ExpertTables::allocate(size_t count) {
  if (free_count_ < count) {
    free_count_ = std::max(count, kPieceWeights);
    void* piece = nullptr;
    cuda_check(cudaMalloc(&piece, free_count_ * sizeof(ExpertWeight)));
    pieces_.push_back(piece);
    free_ = static_cast<ExpertWeight*>(piece);
  }
  free_count_ -= count;
  return std::exchange(free_, free_ + count);
}

size_t experts_scratch_bytes(const StepLimits& limits) {
  if (limits.top_k == 0 || limits.rows <= kFewRows) return 0;
  return many_rows_scratch_bytes(limits.rows, limits.hidden, limits.top_k, limits.experts,
                                 limits.expert_width, limits.expert_width);
}

void CudaOps::experts(const ExpertsArgs& args) { run_experts(args, {}, nullptr); }

void CudaOps::routed_experts(const RoutedExpertsArgs& args) {
  check_shapes(args.routing());
  if (can_choose(args))
    return run_experts(args.experts, {args.logits.f32(), or_null(args.scales)}, nullptr);
  route(args.routing());
  this->experts(args.experts);
}

void CudaOps::mlp_and_experts(const MlpAndExpertsArgs& args) {
  const GatedMlpArgs& mlp = args.mlp;
  const ExpertsArgs& experts = args.experts.experts;
  const int64_t rows = experts.x.shape[0];
  const int64_t values =
      rows * (experts.ids.shape[1] * experts.experts[0].gate.info.out + mlp.mlp.gate.info.out);
  if (!can_choose(args.experts) || mlp.add || mlp.activation != experts.activation ||
      mlp.x.shape != experts.x.shape || experts.scratch.count() < values)
    return Ops::mlp_and_experts(args);
  check(experts.shared.gate.empty(), "mlp_and_experts: experts with a shared one");
  check_shapes(mlp);
  check_shapes(args.experts.routing());
  run_experts(experts, {args.experts.logits.f32(), or_null(args.experts.scales)}, &mlp);
}

// A dense MLP is a shared expert whose input and output are its own.
void CudaOps::run_experts(const ExpertsArgs& args, const Choosing& choosing,
                          const GatedMlpArgs* dense) {
  const Dims dims = check_shapes(args);
  const int64_t rows = dims["rows"], hidden = dims["hidden"], top_k = dims["top_k"];
  const auto experts = int64_t(args.experts.size());
  check(experts > 0 && experts <= kMostExperts && top_k <= kMostTopK, "experts: ", top_k, " of ",
        experts, "; the most are ", kMostTopK, " of ", kMostExperts);
  if (rows == 0) return;
  const GatedMlp& shared_mlp = dense ? dense->mlp : args.shared;
  const bool has_shared = !shared_mlp.gate.empty();
  const int64_t width = args.experts[0].gate.info.out;
  const int64_t shared_width = has_shared ? shared_mlp.gate.info.out : 0;
  for (const GatedMlp& expert : args.experts) check_expert(expert, hidden, width);
  if (has_shared) check_expert(shared_mlp, hidden, shared_width);

  const ExpertTables::Table& table = expert_tables_.of(args.experts, launcher_.stream, *memory_);
  const DeviceMlp shared = has_shared ? device_mlp(shared_mlp) : DeviceMlp{};
  ExpertsStep step{.x = args.x.f32(),
                   .logits = choosing.logits,
                   .scales = choosing.scales,
                   .ids = args.ids.i32(),
                   .weights = args.weights.f32(),
                   .shared_x = dense ? dense->x.f32() : args.x.f32(),
                   .shared_gate = has_shared && !dense ? args.shared_gate.f32() : nullptr,
                   .shared_out = dense ? dense->out.f32() : nullptr,
                   .out = args.out.f32(),
                   .table = table.device,
                   .weights_of = {table.rows[kGate], table.rows[kUp], table.rows[kDown]},
                   .shared = shared,
                   .forms = table.forms,
                   .shared_forms = forms_of({{shared.gate, shared.up}}),
                   .down_forms = table.down_forms,
                   .shared_down_forms = forms_of({{shared.down}}),
                   .gelu = args.activation == Activation::gelu_tanh,
                   .add = args.add,
                   .rows = int32_t(rows),
                   .hidden = int32_t(hidden),
                   .top_k = int32_t(top_k),
                   .experts = int32_t(experts),
                   .width = int32_t(width),
                   .shared_width = int32_t(shared_width)};
  float* activations = args.scratch.f32();
  if (rows <= kFewRows || !std::all_of(args.experts.begin(), args.experts.end(), suits_many_rows))
    return run_few_rows(launcher_, step, activations);

  // A shared expert of another kind comes after the others, as it does in the sum.
  const bool shared_later = has_shared && !suits_many_rows(args.shared);
  if (shared_later) step.shared_width = 0;
  run_many_rows(
      launcher_, step,
      scratch(many_rows_scratch_bytes(rows, hidden, top_k, experts, width, step.shared_width)));
  if (shared_later) add_shared_expert(args);
}

// A dense MLP whose activations are scaled, which is the same as scaling what comes of them.
void CudaOps::add_shared_expert(const ExpertsArgs& args) {
  const int64_t rows = args.x.shape[0], width = args.shared.gate.info.out;
  const auto bytes = size_t(rows * width) * sizeof(float);
  check(args.scratch.bytes() >= 2 * bytes, "experts: the shared one is wider than all chosen ones");
  const View gate{args.scratch.data, DType::f32, {rows, width}};
  const View up{args.scratch.data + bytes, DType::f32, {rows, width}};
  const LinearOutput outputs[] = {{args.shared.gate, gate}, {args.shared.up, up}};
  linears({.x = args.x, .outputs = outputs});
  gated_mul({.gate = gate, .up = up, .out = gate, .activation = args.activation});
  launch(launcher_, unsigned(rows), kScaleThreads, 0, scale_rows_kernel, gate.f32(),
         args.shared_gate.f32(), width);
  linear({.x = gate, .weight = args.shared.down, .out = args.out, .add = true});
}

}  // namespace slip
