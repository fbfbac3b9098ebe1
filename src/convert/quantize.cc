#include "convert/quantize.h"

#include <algorithm>
#include <future>

#include "checkpoint/index.h"
#include "checkpoint/json_files.h"
#include "checkpoint/safetensors_file.h"
#include "convert/checkpoint_layout.h"
#include "convert/quantize_tensor.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

// Bytes of the source that are computed at once, while as many are written; one matrix may be
// larger.
constexpr uint64_t kBatchBytes = 32 << 20;

// What the folder will hold.
class Layout {
 public:
  static Result<Layout> of(const QuantizeJob& job) {
    Layout layout(job);
    SLIP_TRY(JsonObject config, read_config_json(job.source.folder()));
    config["quantization_config"] = job.quantization_config;
    if (!job.hybrid_note.empty()) config["_hybrid_quant_info"] = job.hybrid_note;
    layout.config_ = json_file_text(config);
    for (const PlannedFile& file : job.plan.files) {
      for (const PlannedTensor& tensor : file.tensors) {
        for (const TensorDeclaration& made : layout.declarations(tensor))
          layout.index_[made.name] = {file.name, made.bytes()};
      }
    }
    return layout;
  }

  const std::string& config() const { return config_; }
  const TensorIndex& index() const { return index_; }

  std::vector<TensorDeclaration> declarations(const PlannedTensor& tensor) const {
    std::vector<TensorDeclaration> result;
    for (NewTensorShape& made : new_tensors(tensor, job_.plan.group))
      result.push_back({std::move(made.name), made.type, std::move(made.shape)});
    return result;
  }

  bool is_there() const {
    return is_described_by(job_.out, config_, index_) && verify(job_.out).ok();
  }

  // Every tensor is there as it was planned.
  Status verify(const fs::path& folder) const {
    SLIP_TRY(const Checkpoint made, Checkpoint::open(folder));
    for (const PlannedFile& file : job_.plan.files) {
      for (const PlannedTensor& tensor : file.tensors) {
        for (const TensorDeclaration& wanted : declarations(tensor)) {
          const StoredTensor* found = made.find(wanted.name);
          if (!found || found->type != wanted.type || found->shape != wanted.shape ||
              found->path().filename() != file.name)
            return error(folder.string(), ": tensor ", wanted.name, " is not in ", file.name,
                         " as it should be");
        }
      }
    }
    return {};
  }

 private:
  explicit Layout(const QuantizeJob& job) : job_(job) {}

  const QuantizeJob& job_;
  std::string config_;
  TensorIndex index_;
};

class Quantizer {
 public:
  Quantizer(const QuantizeJob& job, const Layout& layout, ThreadPool& pool,
            const ConvertProgress& progress)
      : job_(job), layout_(layout), pool_(pool), progress_(progress) {}

  Result<QuantizeResult> run() {
    if (layout_.is_there()) {
      result_.was_there = true;
      return result_;
    }
    SLIP_TRY(OutputFolder output, OutputFolder::open(job_.out, cat("quantize\n", layout_.config(),
                                                                   index_text(layout_.index()))));
    SLIP_TRY_STATUS(output.check_room(bytes_of_files(layout_.index())));
    SLIP_TRY_STATUS(adopt_companions(job_.source.folder(),
                                     {"config.json", "quantization_config.json"}, output));
    for (const PlannedFile& file : job_.plan.files) {
      if (output.has(file.name)) {
        for (const PlannedTensor& tensor : file.tensors) done_ += tensor.source.bytes().size();
      } else {
        SLIP_TRY_STATUS(write_file(output.file(file.name), file));
      }
    }
    SLIP_TRY_STATUS(output.write("config.json", layout_.config()));
    if (!job_.quantization_config.empty() && job_.quantization_config.contains("bits"))
      SLIP_TRY_STATUS(
          output.write("quantization_config.json", json_file_text(job_.quantization_config)));
    SLIP_TRY_STATUS(output.write(kIndexName, index_text(layout_.index())));
    SLIP_TRY_STATUS(layout_.verify(output.path()));
    SLIP_TRY_STATUS(output.publish());
    return result_;
  }

 private:
  // Tensors in order, in batches that all threads work on together.
  Status write_file(const fs::path& path, const PlannedFile& planned) {
    std::vector<TensorDeclaration> all;
    std::vector<size_t> first;  // of each planned tensor, among all
    for (const PlannedTensor& tensor : planned.tensors) {
      first.push_back(all.size());
      for (TensorDeclaration& made : layout_.declarations(tensor)) all.push_back(std::move(made));
    }
    SLIP_TRY(SafetensorsFile file, SafetensorsFile::create(path, all, "pt"));
    Writing writing;
    for (size_t begin = 0; begin < planned.tensors.size();) {
      size_t end = begin;
      uint64_t bytes = 0;
      while (end < planned.tensors.size() && (end == begin || bytes < kBatchBytes))
        bytes += planned.tensors[end++].source.bytes().size();
      SLIP_TRY_STATUS(write_batch(planned, begin, end, first, file, writing));
      begin = end;
    }
    SLIP_TRY_STATUS(finish(writing));
    return file.finish();
  }

  // A batch on its way to the disk, while the next one is computed.
  struct Writing {
    uint64_t source_bytes = 0, bytes = 0;
    std::future<Status> status;  // last: it waits for the end when it goes
  };
  Status finish(Writing& writing) {
    if (!writing.status.valid()) return {};
    SLIP_TRY_STATUS(writing.status.get());
    result_.written += writing.bytes;
    return count(writing.source_bytes);
  }

  Status write_batch(const PlannedFile& planned, size_t begin, size_t end,
                     const std::vector<size_t>& first, SafetensorsFile& file, Writing& writing) {
    std::vector<MatrixInWork> matrices;
    std::vector<size_t> places;
    for (size_t i = begin; i < end; ++i) {
      const PlannedTensor& tensor = planned.tensors[i];
      if (tensor.form == StoredForm::plain) {
        SLIP_TRY_STATUS(finish(writing));  // a file is written by one thread at a time
        SLIP_TRY_STATUS(copy_tensor(tensor.source, first[i], file));
        continue;
      }
      SLIP_TRY(MatrixInWork matrix, begin_matrix(tensor, job_.plan.group, job_.codes));
      matrices.push_back(std::move(matrix));
      places.push_back(first[i]);
    }
    SLIP_TRY_STATUS(finish_matrices(matrices, pool_));
    SLIP_TRY_STATUS(finish(writing));
    writing = {};
    for (const MatrixInWork& matrix : matrices) {
      writing.source_bytes += matrix.tensor->source.bytes().size();
      for (const std::vector<std::byte>& part : matrix.parts) writing.bytes += part.size();
    }
    writing.status = std::async(
        std::launch::async,
        [this, &file, matrices = std::move(matrices), places = std::move(places)]() -> Status {
          for (size_t i = 0; i < matrices.size(); ++i) {
            for (size_t part = 0; part < matrices[i].parts.size(); ++part)
              SLIP_TRY_STATUS(file.write(places[i] + part, 0, matrices[i].parts[part]));
            const SplitTensor& source = matrices[i].tensor->source;
            job_.source.drop_pages(*source.stored, source.bytes());
          }
          return {};
        });
    return {};
  }

  Status copy_tensor(const SplitTensor& tensor, size_t place, SafetensorsFile& file) {
    const std::span<const std::byte> bytes = tensor.bytes();
    for (size_t begin = 0; begin < bytes.size(); begin += kCopyPiece) {
      const auto piece = bytes.subspan(begin, std::min(kCopyPiece, bytes.size() - begin));
      SLIP_TRY_STATUS(file.write(place, begin, piece));
      result_.written += piece.size();
      SLIP_TRY_STATUS(count(piece.size()));
    }
    job_.source.drop_pages(*tensor.stored, bytes);
    return {};
  }

  Status count(uint64_t bytes) {
    done_ += bytes;
    if (!progress_(done_, job_.plan.source_bytes)) return error(kInterrupted);
    return {};
  }

  const QuantizeJob& job_;
  const Layout& layout_;
  ThreadPool& pool_;
  const ConvertProgress& progress_;
  uint64_t done_ = 0;
  QuantizeResult result_;
};

}  // namespace

Result<bool> is_quantized(const QuantizeJob& job) {
  SLIP_TRY(const Layout layout, Layout::of(job));
  if (layout.is_there()) return true;
  SLIP_TRY_STATUS(check_free(job.out));
  return false;
}

Result<QuantizeResult> quantize_checkpoint(const QuantizeJob& job, ThreadPool& pool,
                                           const ConvertProgress& progress) {
  SLIP_TRY(const Layout layout, Layout::of(job));
  return Quantizer(job, layout, pool, progress).run();
}

}  // namespace slip
