// The MTP layer in every form that files hold it in, and in part only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors.h"
#include "kernels/ref/ref_ops.h"
#include "quant/fp8_block.h"
#include "quant/number_formats.h"
#include "tests/checkpoint/test_files.h"
#include "tests/golden/golden_file.h"
#include "tests/models/drafting_model.h"

namespace slip {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// minnow with its MTP tensors changed one by one.
class ChangedMinnow {
 public:
  using Change = std::function<void(ChangedMinnow&, const StoredTensor&)>;

  // The MTP layer goes to `mtp_file`; no index names it.
  explicit ChangedMinnow(const Change& change,
                         const std::string& mtp_file = "model_extra_tensors.safetensors") {
    std::vector<TensorToWrite> others;
    for (const StoredTensor& tensor : minnow_.tensors()) {
      if (tensor.name.starts_with("mtp.")) {
        change(*this, tensor);
      } else {
        others.push_back({tensor.name, tensor.type, tensor.shape, tensor.data});
      }
    }
    check(write_safetensors(folder_.path() / "model.safetensors", others, "pt").ok(), "write");
    check(write_safetensors(folder_.path() / mtp_file, mtp_, "pt").ok(), "write");
    std::filesystem::copy(minnow_folder() / "config.json", folder_.path() / "config.json");
  }

  const Checkpoint& minnow() const { return minnow_; }
  const std::filesystem::path& path() const { return folder_.path(); }

  void keep(const StoredTensor& tensor) {
    mtp_.push_back({tensor.name, tensor.type, tensor.shape, tensor.data});
  }
  void add(std::string name, StoredType type, std::vector<int64_t> shape,
           std::span<const std::byte> data) {
    bytes_.emplace_back(data.begin(), data.end());
    mtp_.push_back({std::move(name), type, std::move(shape), bytes_.back()});
  }

 private:
  const Checkpoint minnow_ = Checkpoint::open(minnow_folder()).value();
  TempFolder folder_;
  std::deque<std::vector<std::byte>> bytes_;
  std::vector<TensorToWrite> mtp_;
};

bool is_projection(const StoredTensor& tensor) {
  return tensor.name.ends_with("_proj.weight") || tensor.name == "mtp.fc.weight";
}

std::vector<float> values_of(const StoredTensor& tensor) {
  std::vector<float> values;
  for (size_t i = 0; i < tensor.data.size(); i += 2) {
    uint16_t bits;
    std::memcpy(&bits, tensor.data.data() + i, 2);
    values.push_back(bf16_to_float(bits));
  }
  return values;
}

void as_fp8(ChangedMinnow& changed, const StoredTensor& tensor) {
  if (!is_projection(tensor)) return changed.keep(tensor);
  const int64_t out = tensor.shape[0], in = tensor.shape[1];
  const WeightInfo from_info{WeightFormat::bf16, out, in, 0};
  const WeightInfo into_info{WeightFormat::fp8_block, out, in, kFp8Block};
  const Buffer from(host_memory(), plain_bytes(from_info)),
      into(host_memory(), plain_bytes(into_info));
  std::memcpy(from.data(), tensor.data.data(), tensor.data.size());
  const Weight fp8 = plain_weight(into_info, into.data());
  ASSERT_TRUE(quantize_fp8_blocks(plain_weight(from_info, from.data()), fp8, 0).ok());
  const auto bytes = [](const View& view) {
    return std::span<const std::byte>(view.data, view.bytes());
  };
  changed.add(tensor.name, StoredType::f8_e4m3, tensor.shape, bytes(fp8.values));
  changed.add(tensor.name + "_scale_inv", StoredType::f32,
              {fp8.scales.shape[0], fp8.scales.shape[1]}, bytes(fp8.scales));
}

// Nearest rounding, as AutoRound quantizes layers that it does not know; groups of 64.
void as_int4(ChangedMinnow& changed, const StoredTensor& tensor) {
  if (!is_projection(tensor)) return changed.keep(tensor);
  const int64_t out = tensor.shape[0], in = tensor.shape[1], group = 64;
  const std::vector<float> values = values_of(tensor);
  std::vector<uint32_t> qweight(size_t(in / 8 * out)), qzeros(size_t(in / group * out / 8));
  std::vector<uint16_t> scales(size_t(in / group * out));
  std::ranges::fill(qzeros, 0x77777777u);
  for (int64_t row = 0; row < out; ++row)
    for (int64_t first = 0; first < in; first += group) {
      const float* part = values.data() + row * in + first;
      const float extreme = *std::max_element(
          part, part + group, [](float a, float b) { return std::abs(a) < std::abs(b); });
      uint16_t& bits = scales[size_t(first / group * out + row)];
      bits = float_to_f16(-extreme / 8);
      const float scale = f16_to_float(bits);
      for (int64_t i = 0; i < group; ++i) {
        const float code = scale == 0 ? 0 : std::clamp(std::nearbyint(part[i] / scale), -8.f, 7.f);
        const int64_t column = first + i;
        qweight[size_t(column / 8 * out + row)] |= uint32_t(int(code) + 8) << (column % 8 * 4);
      }
    }
  const std::string module = tensor.name.substr(0, tensor.name.size() - strlen(".weight"));
  changed.add(module + ".qweight", StoredType::i32, {in / 8, out},
              std::as_bytes(std::span(qweight)));
  changed.add(module + ".qzeros", StoredType::i32, {in / group, out / 8},
              std::as_bytes(std::span(qzeros)));
  changed.add(module + ".scales", StoredType::f16, {in / group, out},
              std::as_bytes(std::span(scales)));
}

// All experts in two tensors: gates above ups, and downs.
void fused(ChangedMinnow& changed, const StoredTensor& tensor) {
  const std::string experts = "mtp.layers.0.mlp.experts.";
  if (!tensor.name.starts_with(experts)) return changed.keep(tensor);
  if (tensor.name != experts + "0.down_proj.weight") return;  // once
  const auto join = [&](std::initializer_list<const char*> projections) {
    std::vector<std::byte> bytes;
    for (int expert = 0; expert < 16; ++expert)
      for (const char* projection : projections) {
        const StoredTensor* part =
            changed.minnow().find(cat(experts, expert, ".", projection, ".weight"));
        bytes.insert(bytes.end(), part->data.begin(), part->data.end());
      }
    return bytes;
  };
  changed.add(experts + "gate_up_proj", StoredType::bf16, {16, 256, 384},
              join({"gate_proj", "up_proj"}));
  changed.add(experts + "down_proj", StoredType::bf16, {16, 384, 128}, join({"down_proj"}));
}

void keep(ChangedMinnow& changed, const StoredTensor& tensor) { changed.keep(tensor); }

const std::vector<int32_t>& text() {
  static const std::vector<int32_t> ids = prompt_ids("docs_page");
  return ids;
}

DraftingModel::Rows run(const std::filesystem::path& folder) {
  DraftingModel model(folder, fast_backends().front());
  EXPECT_EQ(model.model().info().drafter, DrafterKeys::own);
  return model.run(text());
}

const DraftingModel::Rows& as_published() {
  static const DraftingModel::Rows rows = run(minnow_folder());
  return rows;
}

TEST(MtpForms, AnExtraFileUnderAnyUsualName) {
  for (const char* name : {"model_extra_tensors.safetensors", "mtp.safetensors",
                           "qwen-mtp-layer.safetensors", "extra.safetensors"}) {
    const ChangedMinnow changed(keep, name);
    EXPECT_EQ(run(changed.path()).drafts.values, as_published().drafts.values) << name;
  }
}

TEST(MtpForms, FusedExpertsAreTheSameExperts) {
  const ChangedMinnow changed(fused);
  EXPECT_EQ(run(changed.path()).drafts.values, as_published().drafts.values);
}

// The share of drafts that are those of the layer in 16 bits.
double same_drafts(const DraftingModel::Rows& found) {
  EXPECT_EQ(found.logits.values, as_published().logits.values) << "drafts decide nothing";
  int64_t same = 0;
  for (int64_t row = 0; row < found.drafts.rows(); ++row)
    same += argmax(found.drafts.row(row)) == argmax(as_published().drafts.row(row));
  return double(same) / double(found.drafts.rows());
}

TEST(MtpForms, Fp8) {
  const ChangedMinnow changed(as_fp8);
  const double same = same_drafts(run(changed.path()));
  EXPECT_GE(same, 0.95);
  EXPECT_LT(same, 1) << "is the layer quantized at all?";
}

TEST(MtpForms, Int4) {
  const ChangedMinnow changed(as_int4);
  const double same = same_drafts(run(changed.path()));
  EXPECT_GE(same, 0.75);
  EXPECT_LT(same, 1) << "is the layer quantized at all?";
}

// A choice of format leaves quantized layers alone: all that changes is drafting's copy of the
// head.
TEST(MtpForms, AnInt8DrafterOfQuantizedFiles) {
  const ChangedMinnow changed(as_int4);
  DraftingModel chosen(changed.path(), fast_backends().front(),
                       {.int8_head = true, .drafter = WeightFormat::int8_row});
  DraftingModel plain(changed.path(), fast_backends().front(), {.int8_head = true});
  EXPECT_EQ(chosen.run(text()).drafts.values, plain.run(text()).drafts.values);
}

// What opening says, and that the model runs without drafts.
std::vector<std::string> notes_without_drafts(const std::filesystem::path& folder) {
  const ModelSource source = ModelSource::open(folder).value();
  EXPECT_FALSE(source.can_draft());
  DraftingModel model(folder, fast_backends().front(), {.draft_shortlist = 100});
  EXPECT_FALSE(model.model().info().drafter);
  EXPECT_EQ(model.run(text()).logits.values, as_published().logits.values);
  return source.notes();
}

ChangedMinnow::Change without(const std::vector<std::string>& names) {
  return [=](ChangedMinnow& changed, const StoredTensor& tensor) {
    if (std::ranges::find(names, tensor.name) == names.end()) changed.keep(tensor);
  };
}

TEST(IncompleteMtp, IsNotedAndTheModelRuns) {
  for (const std::string missing :
       {"mtp.fc.weight", "mtp.norm.weight", "mtp.pre_fc_norm_hidden.weight",
        "mtp.layers.0.mlp.gate.weight", "mtp.layers.0.mlp.experts.15.up_proj.weight"}) {
    const ChangedMinnow changed(without({missing}));
    EXPECT_THAT(notes_without_drafts(changed.path()),
                Contains("MTP layer incomplete: 1 tensors missing, first " + missing +
                         "; drafting is off"));
  }
}

TEST(IncompleteMtp, CountsWhatIsMissing) {
  const ChangedMinnow changed(without({"mtp.norm.weight", "mtp.layers.0.self_attn.q_proj.weight",
                                       "mtp.layers.0.mlp.experts.3.down_proj.weight"}));
  EXPECT_THAT(notes_without_drafts(changed.path()),
              Contains(HasSubstr("3 tensors missing, first mtp.layers.0.self_attn.q_proj.weight")));
}

TEST(IncompleteMtp, CodesWithoutTheirScales) {
  const ChangedMinnow int4([](ChangedMinnow& changed, const StoredTensor& tensor) {
    if (tensor.name != "mtp.layers.0.self_attn.k_proj.weight") return changed.keep(tensor);
    const std::vector<int32_t> codes(384 / 8 * 512);
    changed.add("mtp.layers.0.self_attn.k_proj.qweight", StoredType::i32, {384 / 8, 512},
                std::as_bytes(std::span(codes)));
  });
  EXPECT_THAT(notes_without_drafts(int4.path()),
              Contains(HasSubstr("first mtp.layers.0.self_attn.k_proj.scales;")));
}

TEST(IncompleteMtp, AnnouncedButNotThere) {
  const ChangedMinnow changed([](ChangedMinnow&, const StoredTensor&) {});
  EXPECT_THAT(notes_without_drafts(changed.path()),
              Contains(HasSubstr("announces an MTP layer, the files hold none")));
}

// What is there must still fit: a wrong shape is a wrong file.
TEST(IncompleteMtp, AWrongShapeIsRefused) {
  const ChangedMinnow changed([](ChangedMinnow& minnow, const StoredTensor& tensor) {
    if (tensor.name != "mtp.norm.weight") return minnow.keep(tensor);
    minnow.add(tensor.name, StoredType::bf16, {383}, tensor.data.first(2 * 383));
  });
  const ModelSource source = ModelSource::open(changed.path()).value();
  ThreadPool pool(1);
  const std::unique_ptr<Ops> ops = make_ref_ops();
  expect_error(source.load({.max_rows = 1, .context = 64, .with_drafter = true}, *ops, pool, {}),
               {"mtp.norm.weight", "[384]", "[383]"});
  EXPECT_TRUE(source.load({.max_rows = 1, .context = 64}, *ops, pool, {}).ok())
      << "nobody asked for the layer";
}

// The head has no stand-in.
TEST(MissingHead, IsRefusedWhateverItIsToBecome) {
  const TempFolder folder;
  const Checkpoint minnow = Checkpoint::open(minnow_folder()).value();
  std::vector<TensorToWrite> tensors;
  for (const StoredTensor& tensor : minnow.tensors())
    if (tensor.name != "lm_head.weight")
      tensors.push_back({tensor.name, tensor.type, tensor.shape, tensor.data});
  ASSERT_TRUE(write_safetensors(folder.path() / "model.safetensors", tensors, "pt").ok());
  std::filesystem::copy(minnow_folder() / "config.json", folder.path() / "config.json");
  const ModelSource source = ModelSource::open(folder.path()).value();
  const std::unique_ptr<Ops> ops = make_ref_ops();
  for (const WeightChoices& choices :
       {WeightChoices{}, WeightChoices{.int8_head = true}, WeightChoices{.draft_shortlist = 9}})
    expect_error(
        source.plan({.max_rows = 1, .context = 64, .with_drafter = true, .weights = choices}, *ops),
        {"lm_head.weight", "missing", "[8192, 384]"});
}

}  // namespace
}  // namespace slip
