#include "tests/gpu/hosted_ops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace slip {
namespace {

constexpr size_t kAlignment = 256;  // of every Buffer
constexpr size_t kGuard = 256;
constexpr std::byte kPoison{0xff};

bool is_poison(std::byte byte) { return byte == kPoison; }

// One view, however often it is named.
struct Copy {
  std::byte* original;
  Shape shape;
  size_t bytes;
  size_t offset;
  bool written;

  bool is_of(const View& view) const { return view.data == original && view.bytes() == bytes; }
};

// The copies of an operation's views, one after the other, with guards around each.
struct Layout {
  std::vector<Copy> copies;
  size_t end = 0;  // of the last copy

  size_t bytes() const { return end + kGuard; }

  // Number of the view's copy.
  size_t place(const View& view, bool written) {
    for (Copy& copy : copies) {
      if (!copy.is_of(view)) continue;
      copy.written = copy.written || written;
      return size_t(&copy - copies.data());
    }
    const size_t aligned = (end + kGuard + kAlignment - 1) / kAlignment * kAlignment;
    const size_t offset = aligned + reinterpret_cast<uintptr_t>(view.data) % kAlignment;
    copies.push_back({view.data, view.shape, view.bytes(), offset, written});
    end = offset + view.bytes();
    return copies.size() - 1;
  }

  // "5 bytes behind a view of [2, 3]"
  std::string describe(size_t offset) const {
    size_t number = copies.size() - 1;
    while (number > 0 && offset < copies[number].offset) --number;
    const Copy& copy = copies[number];
    if (offset < copy.offset)
      return cat(copy.offset - offset, " bytes before a view of ", copy.shape);
    return cat(offset - copy.offset - copy.bytes, " bytes behind a view of ", copy.shape);
  }
};

std::vector<View*> views_of(KvPages& kv) {
  return {&kv.keys, &kv.values, &kv.key_scales, &kv.value_scales, &kv.key_tail, &kv.value_tail};
}

}  // namespace

HostedOps::HostedOps(std::unique_ptr<Ops> far) : ForwardingOps(*far), far_(std::move(far)) {}

Weight HostedOps::pack(const Weight& plain, std::span<std::byte> storage) {
  Buffer& weight = weights_[storage.data()];
  weight = Buffer(far_->memory(), storage.size() + 2 * kGuard);
  sent_.assign(weight.size(), kPoison);
  far_->memory().upload(weight.data(), sent_.data(), sent_.size());
  const Weight packed = far_->pack(plain, weight.bytes().subspan(kGuard, storage.size()));
  EXPECT_TRUE(untouched(weight, 0, kGuard)) << "pack: written before a weight";
  EXPECT_TRUE(untouched(weight, kGuard + storage.size(), weight.size()))
      << "pack: written behind a weight";
  return packed;
}

bool HostedOps::untouched(const Buffer& weight, size_t begin, size_t end) {
  returned_.resize(end - begin);
  far_->memory().download(returned_.data(), weight.data() + begin, returned_.size());
  return std::all_of(returned_.begin(), returned_.end(), is_poison);
}

void HostedOps::run(const char* op, const Views& read, const Views& written,
                    FunctionRef<void()> call) {
  Layout layout;
  std::vector<std::pair<View*, size_t>> placed;
  for (View* view : read)
    if (!view->empty()) placed.emplace_back(view, layout.place(*view, false));
  for (View* view : written)
    if (!view->empty()) placed.emplace_back(view, layout.place(*view, true));

  sent_.assign(layout.bytes(), kPoison);
  for (const Copy& copy : layout.copies)
    std::memcpy(sent_.data() + copy.offset, copy.original, copy.bytes);
  if (copies_.size() < sent_.size()) {
    copies_ = Buffer();
    copies_ = Buffer(far_->memory(), 2 * sent_.size());
  }
  far_->memory().upload(copies_.data(), sent_.data(), sent_.size());
  for (const auto& [view, number] : placed)
    view->data = copies_.data() + layout.copies[number].offset;

  call();

  returned_.resize(sent_.size());
  far_->memory().download(returned_.data(), copies_.data(), returned_.size());
  for (const Copy& copy : layout.copies) {
    std::byte* result = returned_.data() + copy.offset;
    if (copy.written)
      std::memcpy(copy.original, result, copy.bytes);
    else
      EXPECT_EQ(std::memcmp(copy.original, result, copy.bytes), 0)
          << op << ": changed an input of " << copy.shape;
    std::fill_n(result, copy.bytes, kPoison);
  }
  const auto touched = std::find_if_not(returned_.begin(), returned_.end(), is_poison);
  EXPECT_TRUE(touched == returned_.end())
      << op << ": written " << layout.describe(size_t(touched - returned_.begin()));
}

void HostedOps::embed(const EmbedArgs& args) {
  EmbedArgs far = args;
  View packed;  // is there already
  run("embed", {&far.ids, far.table.packed ? &packed : &far.table.values}, {&far.out},
      [&] { far_->embed(far); });
}

void HostedOps::rms_norm(const RmsNormArgs& args) {
  RmsNormArgs far = args;
  run("rms_norm", {&far.x, &far.scale}, {&far.out}, [&] { far_->rms_norm(far); });
}

void HostedOps::linear(const LinearArgs& args) {
  LinearArgs far = args;
  run("linear", {&far.x}, {&far.out}, [&] { far_->linear(far); });
}

void HostedOps::gated_mul(const GatedMulArgs& args) {
  GatedMulArgs far = args;
  run("gated_mul", {&far.gate, &far.up}, {&far.out}, [&] { far_->gated_mul(far); });
}

void HostedOps::route(const RouteArgs& args) {
  RouteArgs far = args;
  run("route", {&far.logits, &far.scales}, {&far.ids, &far.weights}, [&] { far_->route(far); });
}

void HostedOps::causal_conv(const CausalConvArgs& args) {
  CausalConvArgs far = args;
  run("causal_conv", {&far.x, &far.weight}, {&far.tail, &far.out}, [&] { far_->causal_conv(far); });
}

void HostedOps::delta_net(const DeltaNetArgs& args) {
  DeltaNetArgs far = args;
  DeltaRecord& record = far.record;
  run("delta_net", {&far.qkv, &far.a, &far.b, &far.rate, &far.dt_bias},
      {&far.state, &record.keys, &record.deltas, &record.decays, &far.out},
      [&] { far_->delta_net(far); });
}

void HostedOps::gated_rms_norm(const GatedRmsNormArgs& args) {
  GatedRmsNormArgs far = args;
  run("gated_rms_norm", {&far.x, &far.gate, &far.scale}, {&far.out},
      [&] { far_->gated_rms_norm(far); });
}

void HostedOps::rope_table(const RopeTableArgs& args) {
  RopeTableArgs far = args;
  run("rope_table", {&far.frequencies}, {&far.cos, &far.sin}, [&] { far_->rope_table(far); });
}

void HostedOps::rotate_and_store(const RotateAndStoreArgs& args) {
  RotateAndStoreArgs far = args;
  Views read = {&far.q, &far.q_scale, &far.k_scale, &far.cos, &far.sin};
  Views written = views_of(far.kv);
  written.push_back(&far.out_q);
  for (View* rows : {&far.k, &far.v}) (far.kv.recipe.coded() ? written : read).push_back(rows);
  run("rotate_and_store", read, written, [&] { far_->rotate_and_store(far); });
}

void HostedOps::attention(const AttentionArgs& args) {
  AttentionArgs far = args;
  Views read = views_of(far.kv);
  read.insert(read.end(), {&far.q, &far.k, &far.v});
  run("attention", read, {&far.out}, [&] { far_->attention(far); });
}

void HostedOps::gate_heads(const GateHeadsArgs& args) {
  GateHeadsArgs far = args;
  run("gate_heads", {&far.q_and_gate}, {&far.x}, [&] { far_->gate_heads(far); });
}

void HostedOps::soft_cap(const SoftCapArgs& args) {
  SoftCapArgs far = args;
  run("soft_cap", {}, {&far.x}, [&] { far_->soft_cap(far); });
}

void HostedOps::peaks(const PeaksArgs& args) {
  PeaksArgs far = args;
  run("peaks", {&far.x, &far.tokens}, {&far.out, &far.ids}, [&] { far_->peaks(far); });
}

void HostedOps::candidates(const CandidatesArgs& args) {
  CandidatesArgs far = args;
  run("candidates", {&far.x}, {&far.out}, [&] { far_->candidates(far); });
}

void HostedOps::join(const JoinArgs& args) {
  JoinArgs far = args;
  run("join", {&far.a, &far.b}, {&far.out}, [&] { far_->join(far); });
}

void HostedOps::linears(const LinearsArgs& args) {
  LinearsArgs far = args;
  std::vector<LinearOutput> outputs(args.outputs.begin(), args.outputs.end());
  far.outputs = outputs;
  Views written;
  for (LinearOutput& output : outputs) written.push_back(&output.out);
  run("linears", {&far.x}, written, [&] { far_->linears(far); });
}

void HostedOps::gated_delta_net(const GatedDeltaNetArgs& args) {
  GatedDeltaNetArgs far = args;
  DeltaRecord& record = far.record;
  run("gated_delta_net",
      {&far.qkv, &far.conv, &far.a, &far.b, &far.rate, &far.dt_bias, &far.z, &far.norm_scale},
      {&far.tail, &far.convolved, &far.state, &record.keys, &record.deltas, &record.decays,
       &far.mixed, &far.out},
      [&] { far_->gated_delta_net(far); });
}

void HostedOps::gate_heads_linear(const GateHeadsLinearArgs& args) {
  GateHeadsLinearArgs far = args;
  run("gate_heads_linear", {&far.q_and_gate}, {&far.x, &far.out},
      [&] { far_->gate_heads_linear(far); });
}

void HostedOps::gated_mlp(const GatedMlpArgs& args) {
  GatedMlpArgs far = args;
  run("gated_mlp", {&far.x}, {&far.scratch, &far.out}, [&] { far_->gated_mlp(far); });
}

void HostedOps::experts(const ExpertsArgs& args) {
  ExpertsArgs far = args;
  run("experts", {&far.x, &far.ids, &far.weights, &far.shared_gate}, {&far.scratch, &far.out},
      [&] { far_->experts(far); });
}

void HostedOps::routed_experts(const RoutedExpertsArgs& args) {
  RoutedExpertsArgs far = args;
  ExpertsArgs& experts = far.experts;
  run("routed_experts", {&far.logits, &far.scales, &experts.x, &experts.shared_gate},
      {&experts.ids, &experts.weights, &experts.scratch, &experts.out},
      [&] { far_->routed_experts(far); });
}

void HostedOps::mlp_and_experts(const MlpAndExpertsArgs& args) {
  MlpAndExpertsArgs far = args;
  GatedMlpArgs& mlp = far.mlp;
  RoutedExpertsArgs& routed = far.experts;
  ExpertsArgs& experts = routed.experts;
  run("mlp_and_experts", {&mlp.x, &routed.logits, &routed.scales, &experts.x, &experts.shared_gate},
      {&mlp.scratch, &mlp.out, &experts.ids, &experts.weights, &experts.scratch, &experts.out},
      [&] { far_->mlp_and_experts(far); });
}

namespace {

// A branch that joins the residual, with outputs of its own.
struct FarBranch {
  AddBranchArgs args;
  std::vector<NormOutput> outputs;
  std::vector<View*> read, written;

  explicit FarBranch(const AddBranchArgs& near)
      : args(near),
        outputs(near.outputs.begin(), near.outputs.end()),
        read{&args.scale, &args.beside, &args.branch_scale, &args.beside_scale},
        written{&args.branch, &args.sum} {
    args.outputs = outputs;
    (args.sum.empty() ? written : read).push_back(&args.residual);
    for (NormOutput& output : outputs) {
      read.push_back(&output.scale);
      written.push_back(&output.out);
    }
  }
};

}  // namespace

void HostedOps::add_branch(const AddBranchArgs& args) {
  FarBranch far(args);
  run("add_branch", far.read, far.written, [&] { far_->add_branch(far.args); });
}

void HostedOps::add_branch_linears(const AddBranchLinearsArgs& args) {
  FarBranch far(args.branch);
  std::vector<LinearOutput> outputs(args.outputs.begin(), args.outputs.end());
  for (LinearOutput& output : outputs) far.written.push_back(&output.out);
  run("add_branch_linears", far.read, far.written,
      [&] { far_->add_branch_linears({.branch = far.args, .outputs = outputs}); });
}

void HostedOps::norm_linears(const NormLinearsArgs& args) {
  NormLinearsArgs far = args;
  std::vector<LinearOutput> outputs(args.outputs.begin(), args.outputs.end());
  far.outputs = outputs;
  Views written = {&far.norm.out};
  for (LinearOutput& output : outputs) written.push_back(&output.out);
  run("norm_linears", {&far.norm.x, &far.norm.scale}, written, [&] { far_->norm_linears(far); });
}

void HostedOps::cluster_head(const ClusterHeadArgs& args) {
  ClusterHeadArgs far = args;
  run("cluster_head", {&far.x, &far.chosen, &far.tokens}, {&far.scratch, &far.out},
      [&] { far_->cluster_head(far); });
}

}  // namespace slip
