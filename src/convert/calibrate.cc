#include "convert/calibrate.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "checkpoint/safetensors.h"
#include "convert/capturing_ops.h"
#include "convert/plain_matrix.h"
#include "engine/session.h"
#include "quant/int4_group.h"
#include "tensor/buffer.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

// Share of the mean square of an input that is added to each: as GPTQ does.
constexpr double kDamping = 0.01;
// A matrix that saw fewer rows, such as an expert that hardly a token went to, is rounded to
// nearest.
constexpr int64_t kLeastRows = 64;
constexpr int64_t kRoundedRowsPerItem = 16;

// "model.language_model.layers.0" of "model.language_model.layers.0.mlp.up_proj"; a matrix outside
// of layers, such as the head, is a layer of its own.
std::string layer_of(const std::string& module) {
  constexpr std::string_view kLayers = ".layers.";
  const size_t layers = module.find(kLayers);
  if (layers == std::string::npos) return module;
  return module.substr(0, module.find('.', layers + kLayers.size()));
}

struct Layer {
  std::string name;
  std::vector<const PlannedTensor*> matrices;
};

// In the order in which a forward pass meets them: by their numbers, what lies outside last.
std::vector<Layer> layers_of(const QuantizePlan& plan) {
  std::vector<Layer> layers;
  std::map<std::string, size_t> places;
  for (const PlannedFile& file : plan.files) {
    for (const PlannedTensor& tensor : file.tensors) {
      const bool mtp = class_of_tensor(tensor.source.name) == TensorClass::mtp;
      if (tensor.form != StoredForm::int4 || mtp) continue;
      const std::string name = layer_of(tensor.module());
      const auto [place, added] = places.emplace(name, layers.size());
      if (added) layers.push_back({name, {}});
      layers[place->second].matrices.push_back(&tensor);
    }
  }
  const auto number = [](const Layer& layer) {
    const size_t dot = layer.name.rfind('.');
    const bool inside = layer.name.find(".layers.") != std::string::npos;
    return inside ? std::stoll(layer.name.substr(dot + 1)) : INT64_MAX;
  };
  std::stable_sort(layers.begin(), layers.end(),
                   [&](const Layer& a, const Layer& b) { return number(a) < number(b); });
  return layers;
}

}  // namespace

int64_t CalibrationText::longest() const {
  size_t most = 0;
  for (const std::vector<int32_t>& sample : samples) most = std::max(most, sample.size());
  return int64_t(most);
}

int64_t CalibrationText::tokens() const {
  size_t sum = 0;
  for (const std::vector<int32_t>& sample : samples) sum += sample.size();
  return int64_t(sum);
}

Result<OutputFolder> calibration_folder(const fs::path& out, const std::string& purpose) {
  fs::path target = out.has_filename() ? out : out.parent_path();
  target += ".calibration";
  return OutputFolder::open(target, cat("calibration\n", purpose, "\n"));
}

std::string fingerprint(const CalibrationText& text) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const std::vector<int32_t>& sample : text.samples) {
    for (const int32_t id : sample) hash = (hash ^ uint64_t(uint32_t(id))) * 1099511628211u;
    hash = (hash ^ uint64_t{0xffffffffff}) * 1099511628211u;
  }
  return cat(hash);
}

class Calibrator {
 public:
  Calibrator(const CalibrateRequest& request, Ops& ops, ThreadPool& pool,
             const OnCalibration& progress)
      : request_(request), pool_(pool), ops_(ops, pool), progress_(progress) {}

  Result<std::unique_ptr<CalibratedCodes>> run() {
    std::unique_ptr<CalibratedCodes> codes(new CalibratedCodes);
    const std::vector<Layer> layers = layers_of(request_.plan);
    bool all_there = true;
    const auto is_there = [&](size_t layer) {
      std::error_code absent;
      return fs::exists(file_of(layer), absent);
    };
    for (size_t i = 0; i < layers.size(); ++i) all_there &= is_there(i);
    if (!all_there) SLIP_TRY_STATUS(load_model());
    for (size_t i = 0; i < layers.size(); ++i) {
      if (!is_there(i)) {
        now_ = {.layer = i, .layers = layers.size(), .tokens = request_.text.tokens()};
        SLIP_TRY_STATUS(calibrate(layers[i], file_of(i), *codes));
      }
      SLIP_TRY_STATUS(read_codes(file_of(i), *codes));
      if (!all_there) SLIP_TRY_STATUS(put_into_model(layers[i], *codes));
    }
    return codes;
  }

 private:
  fs::path file_of(size_t layer) const {
    return request_.work / cat("layer-", layer, ".safetensors");
  }

  Status load_model() {
    SLIP_TRY(const ModelSource source, ModelSource::open(request_.rounded));
    EngineOptions options;
    options.memory.context = request_.text.longest();
    SLIP_TRY(engine_, Engine::load(source, options, ops_, pool_, {}));
    ops_.name_weights(engine_->model().placed_weights());
    return {};
  }

  Status read_text() {
    Session session(*engine_);
    for (const std::vector<int32_t>& sample : request_.text.samples) {
      session.clear();
      SLIP_TRY_STATUS(session.feed(sample));
      now_.tokens_done += int64_t(sample.size());
      if (!progress_(now_)) return error(kInterrupted);
    }
    return {};
  }

  // Reads the text with an eye on the layer's matrices, and rounds them.
  Status calibrate(const Layer& layer, const fs::path& file, CalibratedCodes& codes) {
    std::vector<std::string> modules;
    for (const PlannedTensor* tensor : layer.matrices)
      if (ops_.knows(tensor->module())) modules.push_back(tensor->module());
    ops_.watch(modules, layer.name);
    SLIP_TRY_STATUS(read_text());
    LayerErrors errors{.layer = layer.name, .matrices = int64_t(layer.matrices.size())};
    std::vector<Buffer> storage;
    std::vector<TensorToWrite> tensors;
    std::map<const Gram*, DescentGram> grams;  // several matrices may share an input
    for (const PlannedTensor* tensor : layer.matrices) {
      const WeightInfo info{WeightFormat::int4_group, tensor->source.shape[0],
                            tensor->source.shape[1], request_.plan.group};
      storage.emplace_back(host_memory(), plain_bytes(info));
      const Weight plain = plain_weight(info, storage.back().data());
      SLIP_TRY(const PlainMatrix from,
               PlainMatrix::of(*tensor->source.stored, tensor->source.first_row, info.out));
      const Gram* seen = ops_.knows(tensor->module()) ? ops_.gram_of(tensor->module()) : nullptr;
      if (seen && seen->rows < kLeastRows) seen = nullptr;
      const DescentGram* gram =
          seen ? &grams.try_emplace(seen, *seen, kDamping).first->second : nullptr;
      Status rounded = round(from.weight(), plain, gram, errors);
      if (!rounded.ok()) return std::move(rounded).failure().in(tensor->source.name);
      const auto bytes = [](const View& view) {
        return std::span<const std::byte>(view.data, view.bytes());
      };
      tensors.push_back({tensor->module() + ".codes",
                         StoredType::u8,
                         {info.out, info.in / 2},
                         bytes(plain.values)});
      tensors.push_back({tensor->module() + ".scales",
                         StoredType::f16,
                         {info.out, info.in / info.group},
                         bytes(plain.scales)});
    }
    codes.errors_.push_back(errors);
    return write_safetensors(file, tensors);
  }

  Status round(const Weight& from, const Weight& plain, const DescentGram* gram,
               LayerErrors& errors) {
    const int64_t items = (plain.info.out + kRoundedRowsPerItem - 1) / kRoundedRowsPerItem;
    std::mutex mutex;  // guards `failure` and `errors`
    std::optional<Error> failure;
    pool_.run(items, [&](int64_t item, int) {
      const int64_t first = item * kRoundedRowsPerItem;
      const int64_t rows = std::min(kRoundedRowsPerItem, plain.info.out - first);
      Weight part = from;
      part.info.out = rows;
      part.values = from.values.slice(first, rows);
      Status nearest = quantize_int4_groups(part, plain, first);
      const DescentErrors found = gram && nearest.ok() ? descend({from, plain, first, rows}, *gram,
                                                                 {.sweeps = kCalibrationSweeps})
                                                       : DescentErrors{};
      const std::lock_guard lock(mutex);
      if (!nearest.ok()) failure = std::move(nearest).failure();
      errors.before += found.before;
      errors.after += found.after;
    });
    if (failure) return *failure;
    return {};
  }

  Status read_codes(const fs::path& path, CalibratedCodes& codes) const {
    SLIP_TRY(MappedFile file, MappedFile::open(path));
    SLIP_TRY(const SafetensorsHeader header,
             parse_safetensors_header(file.bytes(), file.bytes().size(), path.string()));
    for (const TensorEntry& entry : header.tensors) {
      const std::string module = entry.name.substr(0, entry.name.rfind('.'));
      auto& into = entry.name.ends_with(".codes") ? codes.codes_ : codes.scales_;
      into[module] = file.bytes().subspan(entry.offset, entry.bytes);
    }
    codes.files_.push_back(std::move(file));
    return {};
  }

  Status put_into_model(const Layer& layer, CalibratedCodes& codes) {
    for (const PlannedTensor* tensor : layer.matrices) {
      if (!ops_.knows(tensor->module())) continue;
      const WeightInfo info{WeightFormat::int4_group, tensor->source.shape[0],
                            tensor->source.shape[1], request_.plan.group};
      const Buffer storage(host_memory(), plain_bytes(info));
      const Weight plain = plain_weight(info, storage.data());
      SLIP_TRY(const bool there, codes.fill(tensor->module(), plain));
      check(there, "no codes for ", tensor->module());
      ops_.replace(tensor->module(), plain);
    }
    return {};
  }

  const CalibrateRequest& request_;
  ThreadPool& pool_;
  CapturingOps ops_;
  const OnCalibration& progress_;
  CalibrateProgress now_;
  std::unique_ptr<Engine> engine_;
};

Result<std::unique_ptr<CalibratedCodes>> CalibratedCodes::make(const CalibrateRequest& request,
                                                               Ops& ops, ThreadPool& pool,
                                                               const OnCalibration& progress) {
  return Calibrator(request, ops, pool, progress).run();
}

Result<bool> CalibratedCodes::fill(const std::string& module, const Weight& plain) {
  const auto codes = codes_.find(module), scales = scales_.find(module);
  if (codes == codes_.end() || scales == scales_.end()) return false;
  if (codes->second.size() != plain.values.bytes() || scales->second.size() != plain.scales.bytes())
    return error("the codes of ", module, " are of another shape; remove the folder they are in");
  std::memcpy(plain.values.data, codes->second.data(), codes->second.size());
  std::memcpy(plain.scales.data, scales->second.data(), scales->second.size());
  return true;
}

}  // namespace slip
