#include "convert/mtp.h"

#include <algorithm>
#include <set>

#include "base/files.h"
#include "checkpoint/index.h"
#include "checkpoint/safetensors_file.h"
#include "checkpoint/tensor_class.h"
#include "convert/checkpoint_layout.h"
#include "convert/split_experts.h"
#include "models/model_source.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

std::vector<const StoredTensor*> mtp_tensors(const Checkpoint& checkpoint) {
  std::vector<const StoredTensor*> found;
  for (const StoredTensor& tensor : checkpoint.tensors())
    if (class_of_tensor(tensor.name) == TensorClass::mtp) found.push_back(&tensor);
  return found;
}

// What the index says; a checkpoint of one file needs none.
Result<std::set<std::string>> names_in_index(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code code;
  if (!fs::exists(folder / kIndexName, code)) return names;
  SLIP_TRY(const std::string text, read_text_file(folder / kIndexName));
  SLIP_TRY(const SafetensorsIndex index, parse_index(text, (folder / kIndexName).string()));
  for (const IndexEntry& entry : index.entries) names.insert(entry.tensor);
  return names;
}

// What the loader says about a folder whose tensors are all there.
Status check_complete(const fs::path& folder) {
  SLIP_TRY(const ModelSource source, ModelSource::open(folder));
  if (source.can_draft()) return {};
  for (const std::string& warning : source.warnings())
    if (warning.find("MTP") != std::string::npos) return error(folder.string(), ": ", warning);
  return error(folder.string(), ": the loader finds no MTP layer");
}

// The layer has to fit the model it drafts for: its norms are as wide as the model's.
Status check_width(const Checkpoint& from, const Checkpoint& to) {
  const auto width = [](const Checkpoint& checkpoint) -> const StoredTensor* {
    for (const StoredTensor& tensor : checkpoint.tensors())
      if (tensor.name.ends_with("embed_tokens.weight")) return &tensor;
    return nullptr;
  };
  const StoredTensor *source = width(from), *target = width(to);
  if (!source || !target || source->shape.back() == target->shape.back()) return {};
  return error(from.folder().string(), ": hidden states have ", source->shape.back(),
               " values there and ", target->shape.back(), " in ", to.folder().string(),
               "; the two are not of the same model");
}

Status write_mtp_file(const fs::path& path, const std::vector<SplitTensor>& tensors) {
  std::vector<TensorDeclaration> declarations;
  declarations.reserve(tensors.size());
  for (const SplitTensor& tensor : tensors)
    declarations.push_back({tensor.name, tensor.stored->type, tensor.shape});
  SLIP_TRY(SafetensorsFile file, SafetensorsFile::create(path, declarations, "pt"));
  for (size_t i = 0; i < tensors.size(); ++i) SLIP_TRY_STATUS(file.write(i, 0, tensors[i].bytes()));
  return file.finish();
}

Result<MtpResult> register_tensors(const Checkpoint& to, const std::set<std::string>& listed,
                                   const MtpRequest& request) {
  const std::vector<const StoredTensor*> there = mtp_tensors(to);
  MtpResult result{.tensors = int64_t(there.size())};
  SLIP_TRY_STATUS(check_complete(request.to));
  const bool all_listed = std::all_of(there.begin(), there.end(), [&](const StoredTensor* tensor) {
    return listed.contains(tensor->name);
  });
  const bool one_file =
      listed.empty() && std::all_of(there.begin(), there.end(), [&](const StoredTensor* tensor) {
        return tensor->file == to.tensors().front().file;
      });
  if (all_listed || one_file) return result;
  result.done = MtpResult::Done::registered;
  if (!request.dry_run)
    SLIP_TRY_STATUS(write_file_atomically(request.to / kIndexName, index_text(index_of(to))));
  return result;
}

}  // namespace

Result<MtpResult> add_mtp(const MtpRequest& request) {
  SLIP_TRY(const Checkpoint to, Checkpoint::open(request.to));
  SLIP_TRY(const std::set<std::string> listed, names_in_index(request.to));
  if (!mtp_tensors(to).empty()) return register_tensors(to, listed, request);
  if (!request.from)
    return error(request.to.string(),
                 ": holds no MTP tensors (mtp.*), and no checkpoint that has them was named")
        .about("source of MTP tensors");
  SLIP_TRY(const Checkpoint from, Checkpoint::open(*request.from));
  const std::vector<const StoredTensor*> found = mtp_tensors(from);
  if (found.empty()) return error(request.from->string(), ": holds no MTP tensors (mtp.*) either");
  SLIP_TRY_STATUS(check_complete(*request.from));
  SLIP_TRY_STATUS(check_width(from, to));
  const std::vector<SplitTensor> tensors = split_fused_experts(found);
  MtpResult result{.done = MtpResult::Done::copied, .tensors = int64_t(tensors.size())};
  TensorIndex index = index_of(to);
  for (const SplitTensor& tensor : tensors) {
    result.bytes += tensor.bytes().size();
    index[tensor.name] = {std::string(kMtpFile), tensor.bytes().size()};
  }
  if (request.dry_run) return result;
  std::error_code code;
  if (fs::exists(request.to / kMtpFile, code))
    return error((request.to / kMtpFile).string(),
                 ": is there already, without MTP tensors; move it away");
  SLIP_TRY_STATUS(write_mtp_file(request.to / kMtpFile, tensors));
  SLIP_TRY_STATUS(write_file_atomically(request.to / kIndexName, index_text(index)));
  SLIP_TRY_STATUS(check_complete(request.to));
  return result;
}

}  // namespace slip
