#include "convert/gguf.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "checkpoint/config_reader.h"
#include "convert/gguf_entries.h"
#include "convert/gguf_vocabulary.h"
#include "models/qwen3_5/shapes.h"
#include "quant/widen_row.h"
#include "weights/checkpoint_source.h"
#include "weights/synthetic_source.h"

namespace slip {
namespace {

// Of a 16- or 32-bit matrix, so much is in memory at once.
constexpr size_t kPieceBytes = size_t(32) << 20;

// The model that is exported, opened.
struct Exported {
  qwen3_5::Config config;
  qwen3_5::Prefixes prefixes{};
  std::optional<Checkpoint> checkpoint{};
  std::unique_ptr<WeightSource> source{};
  bool has_mtp = false;
  std::string name;
  std::vector<int64_t> rope_sections{};
};

Result<Exported> open_shape(const std::string& shape) {
  const std::optional<qwen3_5::Config> config = qwen3_5::shape_by_name(shape);
  if (!config)
    return error("there is no shape \"", shape, "\" of the Qwen3.5 family; there are ",
                 join(qwen3_5::shape_names(), ", "));
  Exported model{.config = *config, .name = shape};
  model.source = std::make_unique<SyntheticSource>(autoround_format);
  model.has_mtp = config->mtp_layers > 0;
  return model;
}

std::vector<int64_t> read_rope_sections(const JsonObject& json) {
  ConfigReader root(json, "config.json");
  ConfigReader* text = root.child_or_null("text_config");
  ConfigReader* rope = (text ? text : &root)->child_or_null("rope_parameters");
  return rope && rope->has("mrope_section") ? rope->require_int_list("mrope_section")
                                            : std::vector<int64_t>();
}

Result<Exported> open_folder(const std::filesystem::path& folder, bool with_mtp) {
  SLIP_TRY(const JsonObject json, read_config_json(folder));
  ConfigReader reader(json, (folder / "config.json").string());
  const std::string type = reader.string_or("model_type", "");
  if (!qwen3_5::handles_model_type(type))
    return error((folder / "config.json").string(), ": model_type \"", type,
                 "\" is not of the Qwen3.5 family, the only one that is exported yet");
  SLIP_TRY(qwen3_5::Config config, qwen3_5::read_config(json, (folder / "config.json").string()));
  Exported model{.config = std::move(config), .name = std::filesystem::absolute(folder).filename()};
  model.rope_sections = read_rope_sections(json);
  SLIP_TRY(model.checkpoint, Checkpoint::open(folder));
  SLIP_TRY(model.prefixes, qwen3_5::find_prefixes(*model.checkpoint));
  model.has_mtp = with_mtp && has_tensors(*model.checkpoint, model.prefixes.mtp);
  return model;
}

// The types of all tensors, found before anything is written.
class Exporter {
 public:
  Exporter(WeightSource& source, std::vector<GgufEntry> entries)
      : source_(source), entries_(std::move(entries)) {}

  Result<std::vector<GgufTensor>> plan(GgufResult& result) {
    std::vector<GgufTensor> tensors;
    for (const GgufEntry& entry : entries_) {
      GgufTensor tensor{.name = entry.name, .shape = {}, .type = GgufType::f32};
      if (entry.is_vector()) {
        rounds_ = false;
        // Sizes of one say nothing.
        for (const int64_t size : entry.shape)
          if (size != 1 || entry.shape.size() == 1) tensor.shape.push_back(size);
        SLIP_TRY(std::vector<float> values, read_vector(entry));
        vectors_.push_back(std::move(values));
      } else {
        SLIP_TRY(tensor.type, type_of(entry));
        if (entry.stacked) tensor.shape.push_back(int64_t(entry.modules.size()));
        tensor.shape.insert(tensor.shape.end(), {entry.out, entry.in});
      }
      result.bytes += tensor.bytes();
      if (rounds_) result.rounded_bytes += tensor.bytes();
      tensors.push_back(std::move(tensor));
    }
    result.tensors = int64_t(tensors.size());
    return tensors;
  }

  Status write(const std::vector<GgufTensor>& tensors, GgufWriter& writer, uint64_t total,
               const ConvertProgress& progress) {
    progress_ = [&] { return progress(writer.written(), total); };
    auto vector = vectors_.begin();
    for (size_t i = 0; i < entries_.size(); ++i) {
      const GgufEntry& entry = entries_[i];
      if (entry.is_vector()) {
        SLIP_TRY_STATUS(writer.append(std::as_bytes(std::span(*vector++))));
        continue;
      }
      for (const std::string& module : entry.modules)
        SLIP_TRY_STATUS(write_matrix(entry, module, tensors[i].type, writer));
    }
    return {};
  }

 private:
  // One type for all matrices of a tensor: their own if that is the same, else one that holds all.
  Result<GgufType> type_of(const GgufEntry& entry) {
    std::optional<GgufType> type;
    rounds_ = false;
    for (const std::string& module : entry.modules) {
      SLIP_TRY(const WeightInfo info, source_.describe(module, entry.out, entry.in));
      GgufType own = gguf_type_of(info.format);
      rounds_ = rounds_ || info.format == WeightFormat::fp8_block;
      if (own == GgufType::q4_0 &&
          (entry.in % kGgufBlock != 0 ||
           (!entry.columns.heads.empty() && entry.columns.width % kGgufBlock != 0)))
        own = GgufType::f32;
      if (type && *type != own) own = GgufType::f32;
      type = own;
    }
    if (entry.exact) return GgufType::f32;
    return *type;
  }

  Status write_matrix(const GgufEntry& entry, const std::string& module, GgufType type,
                      GgufWriter& writer) {
    SLIP_TRY(const WeightInfo info, source_.describe(module, entry.out, entry.in));
    // Rows in another order, and quantized ones, are read at once: those matrices are not large.
    const size_t row_bytes = std::max<size_t>(1, plain_bytes(info) / size_t(info.out));
    const bool in_pieces = is_plain_float(info.format) && entry.rows.empty();
    const int64_t piece =
        in_pieces ? std::clamp<int64_t>(int64_t(kPieceBytes / row_bytes), 1, info.out) : info.out;
    for (int64_t first = 0; first < info.out; first += piece) {
      WeightInfo part = info;
      part.out = std::min(piece, info.out - first);
      storage_.resize(plain_bytes(part));
      const Weight weight = plain_weight(part, storage_.data());
      if (in_pieces) {
        SLIP_TRY_STATUS(source_.read_rows({module, info, first}, weight));
      } else {
        SLIP_TRY_STATUS(source_.read(module, weight));
      }
      bytes_.clear();
      for (int64_t row = 0; row < part.out; ++row)
        append_gguf_row(weight, entry.rows.empty() ? row : entry.rows[size_t(row)], type,
                        entry.columns, bytes_);
      SLIP_TRY_STATUS(writer.append(bytes_));
      if (!progress_()) return error(kInterrupted);
    }
    return {};
  }

  // Small, so they are read when the plan is made: only then is it known that all are there.
  Result<std::vector<float>> read_vector(const GgufEntry& entry) {
    Shape shape;
    switch (entry.shape.size()) {
      case 1: shape = {entry.shape[0]}; break;
      case 2: shape = {entry.shape[0], entry.shape[1]}; break;
      default: shape = {entry.shape[0], entry.shape[1], entry.shape[2]}; break;
    }
    std::vector<float> values(size_t(shape.count()));
    SLIP_TRY_STATUS(source_.read_vector(entry.vector, shape, values));
    if (entry.map) std::transform(values.begin(), values.end(), values.begin(), entry.map);
    if (entry.rows.empty()) return values;
    const auto width = int64_t(values.size() / entry.rows.size());
    std::vector<float> ordered;
    for (const int64_t row : entry.rows)
      ordered.insert(ordered.end(), values.begin() + row * width,
                     values.begin() + (row + 1) * width);
    return ordered;
  }

  WeightSource& source_;
  std::vector<GgufEntry> entries_;
  std::vector<std::vector<float>> vectors_;  // of all entries that are one, in order
  bool rounds_ = false;                      // the last entry that type_of() saw
  std::function<bool()> progress_;
  std::vector<std::byte> storage_, bytes_;
};

}  // namespace

Result<GgufResult> export_gguf(const GgufRequest& request, const ConvertProgress& progress) {
  SLIP_TRY(Exported model, request.shape.empty() ? open_folder(request.model, request.with_mtp)
                                                 : open_shape(request.shape));
  model.has_mtp = model.has_mtp && request.with_mtp;
  if (model.checkpoint)
    model.source = std::make_unique<CheckpointSource>(
        *model.checkpoint, qwen3_5::ignored_prefixes(model.config, model.prefixes, model.has_mtp));
  GgufResult result;
  result.has_mtp = model.has_mtp;

  GgufMetadata metadata;
  add_architecture(model.config, model.has_mtp, model.rope_sections, metadata);
  metadata.add("general.name", model.name);
  if (model.checkpoint) {
    SLIP_TRY_STATUS(add_vocabulary(request.model, model.config.vocabulary, metadata));
  } else {
    add_placeholder_vocabulary(model.config.vocabulary, metadata);
  }
  Exporter exporter(*model.source, gguf_entries(model.config, model.prefixes, model.has_mtp));
  SLIP_TRY(std::vector<GgufTensor> tensors, exporter.plan(result));
  SLIP_TRY_STATUS(model.source->check_all_used());
  SLIP_TRY(GgufWriter writer, GgufWriter::create(request.out, metadata, tensors));
  SLIP_TRY_STATUS(exporter.write(tensors, writer, result.bytes, progress));
  SLIP_TRY_STATUS(writer.finish());
  return result;
}

}  // namespace slip
