#include "convert/hybrid.h"

#include <algorithm>
#include <cmath>

#include "checkpoint/index.h"
#include "checkpoint/json_files.h"
#include "checkpoint/safetensors_file.h"
#include "convert/checkpoint_layout.h"
#include "convert/fp8_twin.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

// A tensor of a new file: from the INT4 checkpoint as it is, or a part of a replacement.
struct NewTensor {
  TensorDeclaration declaration;
  const StoredTensor* kept = nullptr;
  const Replacement* replacement = nullptr;
  bool is_scales = false;
};
using NewFiles = std::map<std::string, std::vector<NewTensor>>;

void add_replacement(const Replacement& one, std::vector<NewTensor>& file) {
  file.push_back({{one.name, one.weight.type, one.weight.shape}, nullptr, &one, false});
  file.push_back({{one.scales_name(), one.scales.type, one.scales.shape}, nullptr, &one, true});
}

class HybridMaker {
 public:
  HybridMaker(const HybridRequest& request, const ConvertProgress& progress)
      : request_(request), progress_(progress) {}

  Result<HybridResult> run() {
    SLIP_TRY_STATUS(lay_out());
    result_.was_there = is_there();
    if (result_.was_there) return result_;
    SLIP_TRY(OutputFolder output, OutputFolder::open(request_.out, purpose()));
    SLIP_TRY_STATUS(check_room(output));
    SLIP_TRY_STATUS(adopt_companions(request_.int4.folder(), {"config.json"}, output));
    SLIP_TRY_STATUS(output.write("config.json", config_));
    for (const fs::path& file : adopted_) {
      if (output.has(file.filename().string())) continue;
      SLIP_TRY(const uint64_t copied, output.adopt(file, request_.link));
      result_.copied += copied;
    }
    for (const auto& [name, tensors] : files_)
      if (!output.has(name)) SLIP_TRY_STATUS(write_file(output.file(name), tensors));
    SLIP_TRY_STATUS(output.write(kIndexName, index_text(index_)));
    SLIP_TRY_STATUS(verify(output.path()));
    SLIP_TRY_STATUS(output.publish());
    return result_;
  }

 private:
  // Decides what every file will hold.
  Status lay_out() {
    index_ = index_of(request_.int4);
    std::map<std::string, const Replacement*> replaced;
    for (const Replacement& one : request_.plan.replacements) replaced[one.name] = &one;
    std::set<std::string> rewritten;
    if (request_.full)
      for (const auto& [name, one] : replaced) rewritten.insert(index_.at(name).file);
    std::set<fs::path> seen;
    for (const StoredTensor& tensor : request_.int4.tensors()) {
      const std::string file = tensor.path().filename().string();
      if (!rewritten.contains(file)) {
        if (seen.insert(tensor.path()).second) adopted_.push_back(tensor.path());
      } else if (!replaced.contains(tensor.name)) {
        files_[file].push_back({{tensor.name, tensor.type, tensor.shape}, &tensor});
      }
    }
    for (const Replacement& one : request_.plan.replacements) {
      const std::string file = request_.full ? index_.at(one.name).file : std::string(kHybridFile);
      add_replacement(one, files_[file]);
      index_[one.name] = {file, one.weight.bytes};
      index_[one.scales_name()] = {file, one.scales.bytes};
    }
    for (const auto& [name, tensors] : files_)
      for (const NewTensor& tensor : tensors) total_ += tensor.declaration.bytes();
    return describe_in_config();
  }

  // As the published recipe does: quantization_config stays what it is for the INT4 part, and a
  // note says what was replaced; loaders find FP8 by the tensors themselves.
  Status describe_in_config() {
    SLIP_TRY(JsonObject config, read_config_json(request_.int4.folder()));
    JsonObject classes;
    for (const auto& [tensor_class, count] : request_.plan.replaced())
      classes[name_of(tensor_class)] = count;
    config["_hybrid_quant_info"] =
        JsonObject{{"description", "INT4 checkpoint with 16-bit matrices replaced by FP8"},
                   {"int4_source", source_name(request_.int4.folder())},
                   {"fp8_source", request_.fp8.origin()},
                   {"fp8_modules", request_.plan.replacements.size()},
                   {"fp8_modules_by_class", std::move(classes)},
                   {"fp8_weight_block_size", {128, 128}},
                   {"layout", request_.full ? "full" : "overlay"}};
    config_ = json_file_text(config);
    return {};
  }

  static std::string source_name(const fs::path& folder) {
    const fs::path normal = fs::absolute(folder).lexically_normal();
    return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
  }

  // Whether an earlier run has made exactly this.
  bool is_there() const {
    return is_described_by(request_.out, config_, index_) && verify(request_.out).ok();
  }

  Status check_room(const OutputFolder& output) const {
    std::map<std::string, uint64_t> files = bytes_of_files(index_);
    for (const fs::path& file : adopted_) {
      SLIP_TRY(files[file.filename().string()], output.bytes_to_adopt(file, request_.link));
    }
    return output.check_room(files);
  }

  std::string purpose() const {
    return cat("hybrid\n", config_, index_text(index_), int(request_.link), "\n");
  }

  Status write_file(const fs::path& path, const std::vector<NewTensor>& tensors) {
    std::vector<TensorDeclaration> declarations;
    declarations.reserve(tensors.size());
    for (const NewTensor& tensor : tensors) declarations.push_back(tensor.declaration);
    SLIP_TRY(SafetensorsFile file, SafetensorsFile::create(path, declarations, "pt"));
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].is_scales) continue;  // written with their matrix
      if (tensors[i].kept) {
        SLIP_TRY_STATUS(copy_tensor(*tensors[i].kept, i, file));
      } else {
        SLIP_TRY_STATUS(write_replacement(*tensors[i].replacement, i, file));
      }
    }
    return file.finish();
  }

  Status copy_tensor(const StoredTensor& tensor, size_t place, SafetensorsFile& file) {
    for (size_t begin = 0; begin < tensor.data.size(); begin += kCopyPiece) {
      const auto piece =
          tensor.data.subspan(begin, std::min(kCopyPiece, tensor.data.size() - begin));
      SLIP_TRY_STATUS(file.write(place, begin, piece));
      SLIP_TRY_STATUS(count(piece.size()));
    }
    request_.int4.drop_pages(tensor, tensor.data);
    return {};
  }

  // The scales lie at the next place.
  Status write_replacement(const Replacement& one, size_t place, SafetensorsFile& file) {
    std::vector<std::byte> weight(one.weight.bytes), scales(one.scales.bytes);
    SLIP_TRY_STATUS(request_.fp8.read(one.weight, weight));
    SLIP_TRY_STATUS(request_.fp8.read(one.scales, scales));
    Status same = check_fp8_twin(*request_.int4.find(one.name), {one, weight, scales});
    if (!same.ok())
      return std::move(same).failure().in(cat(request_.fp8.origin(), ": tensor ", one.weight.name));
    SLIP_TRY_STATUS(file.write(place, 0, weight));
    SLIP_TRY_STATUS(file.write(place + 1, 0, scales));
    return count(weight.size() + scales.size());
  }

  Status count(uint64_t bytes) {
    result_.written += bytes;
    if (!progress_(result_.written, total_)) return error(kInterrupted);
    return {};
  }

  // Every tensor that the index promises is there, as it was planned.
  Status verify(const fs::path& folder) const {
    SLIP_TRY(const Checkpoint made, Checkpoint::open(folder));
    for (const auto& [name, place] : index_) {
      const StoredTensor* tensor = made.find(name);
      if (!tensor || tensor->path().filename() != place.file || tensor->data.size() != place.bytes)
        return error(folder.string(), ": tensor ", name, " is not in ", place.file,
                     " as it should be");
    }
    for (const Replacement& one : request_.plan.replacements)
      if (made.find(one.name)->type != StoredType::f8_e4m3)
        return error(folder.string(), ": tensor ", one.name, " is not FP8 as it should be");
    return {};
  }

  const HybridRequest& request_;
  const ConvertProgress& progress_;
  TensorIndex index_;
  std::vector<fs::path> adopted_;
  NewFiles files_;
  std::string config_;
  uint64_t total_ = 0;
  HybridResult result_;
};

}  // namespace

Result<HybridResult> make_hybrid(const HybridRequest& request, const ConvertProgress& progress) {
  return HybridMaker(request, progress).run();
}

}  // namespace slip
