#include "convert/check_folder.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <set>

#include "checkpoint/json_files.h"
#include "models/model_source.h"
#include "quant/fp8_block.h"
#include "quant/gptq.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

void count_files(const Checkpoint& checkpoint, FolderReport& report) {
  std::set<fs::path> files;
  for (const StoredTensor& tensor : checkpoint.tensors()) files.insert(tensor.path());
  report.files = int64_t(files.size());
  report.tensors = int64_t(checkpoint.tensors().size());
  report.bytes = checkpoint.total_bytes();
}

// What quantization_config promises must be in the files: a reader that believes it must not find
// something else.
void compare_with_config(const Checkpoint& checkpoint, const JsonObject& config,
                         FolderReport& report) {
  const Json* quantization = config.if_contains("quantization_config");
  const std::string_view name = text_or_empty(member_of(quantization, "quant_method"));
  const auto any = [&](std::string_view suffix) {
    return std::any_of(checkpoint.tensors().begin(), checkpoint.tensors().end(),
                       [&](const StoredTensor& tensor) { return tensor.name.ends_with(suffix); });
  };
  const bool int4 = any(".qweight"), fp8 = any(".weight_scale_inv");
  if (name == "fp8" && !fp8)
    report.problems.emplace_back("config.json says quant_method fp8, the files hold no FP8 matrix");
  if ((name == "auto-round" || name == "gptq") && !int4)
    report.problems.push_back(cat("config.json says quant_method ", name,
                                  ", the files hold no packed matrix (.qweight)"));
  if (!(quantization && quantization->is_object()) && (int4 || fp8))
    report.notes.push_back(cat("config.json has no quantization_config although the files hold ",
                               int4 ? "INT4" : "FP8", " matrices; other programs need it"));
}

// Finds the first value whose exponent bits are all ones.
template <class Word>
std::optional<size_t> first_not_finite(std::span<const std::byte> bytes, Word exponent) {
  const size_t count = bytes.size() / sizeof(Word);
  constexpr size_t kRun = 4096;
  for (size_t begin = 0; begin < count; begin += kRun) {
    const size_t end = std::min(count, begin + kRun);
    bool found = false;
    for (size_t i = begin; i < end; ++i) {
      Word word;
      std::memcpy(&word, bytes.data() + i * sizeof(Word), sizeof(Word));
      found |= (word & exponent) == exponent;
    }
    if (!found) continue;
    for (size_t i = begin;; ++i) {
      Word word;
      std::memcpy(&word, bytes.data() + i * sizeof(Word), sizeof(Word));
      if ((word & exponent) == exponent) return i;
    }
  }
  return std::nullopt;
}

std::optional<size_t> first_bad_value(const StoredTensor& tensor) {
  switch (tensor.type) {
    case StoredType::f64: return first_not_finite<uint64_t>(tensor.data, 0x7ff0000000000000u);
    case StoredType::f32: return first_not_finite<uint32_t>(tensor.data, 0x7f800000u);
    case StoredType::f16: return first_not_finite<uint16_t>(tensor.data, 0x7c00);
    case StoredType::bf16: return first_not_finite<uint16_t>(tensor.data, 0x7f80);
    case StoredType::f8_e5m2: return first_not_finite<uint8_t>(tensor.data, 0x7c);
    case StoredType::f8_e8m0: return first_not_finite<uint8_t>(tensor.data, 0xff);
    case StoredType::f8_e4m3:  // check_fp8_codes() says more
    case StoredType::i64:
    case StoredType::i32:
    case StoredType::i16:
    case StoredType::i8:
    case StoredType::u64:
    case StoredType::u32:
    case StoredType::u16:
    case StoredType::u8:
    case StoredType::boolean: return std::nullopt;
  }
  unreachable("StoredType");
}

Status check_tensor(const StoredTensor& tensor) {
  if (const auto bad = first_bad_value(tensor))
    return error("value ", *bad, " is infinite or NaN, expected finite numbers");
  if (tensor.type == StoredType::f8_e4m3)
    return check_fp8_codes(tensor.data, std::max<int64_t>(tensor.shape.back(), 1));
  if (tensor.name.ends_with(".qzeros")) return check_symmetric_zeros(tensor.data);
  return {};
}

}  // namespace

FolderReport check_folder(const fs::path& folder, const Ops& ops) {
  FolderReport report;
  const auto fails = [&](const auto& result) {
    if (result.ok()) return false;
    report.problems.push_back(result.failure().message);
    return true;
  };
  const Result<JsonObject> config = read_config_json(folder);
  const bool no_config = fails(config);
  const Result<Checkpoint> checkpoint = Checkpoint::open(folder);
  if (fails(checkpoint)) return report;
  count_files(checkpoint.value(), report);
  report.notes = checkpoint.value().notes();
  if (no_config) return report;
  compare_with_config(checkpoint.value(), config.value(), report);
  std::error_code code;
  if (!fs::exists(folder / "tokenizer.json", code))
    report.notes.emplace_back("tokenizer.json is missing: text cannot be read or written");

  const Result<ModelSource> source = ModelSource::open(folder);
  if (fails(source)) return report;
  for (const std::string& warning : source.value().warnings()) report.notes.push_back(warning);
  report.has_mtp = source.value().can_draft();
  const Result<ModelPlan> plan = source.value().plan({.with_drafter = true}, ops);
  if (fails(plan)) return report;
  report.family = plan.value().info.family;
  report.layers = plan.value().info.layers;
  return report;
}

Status check_numbers(const fs::path& folder, ThreadPool& pool, FolderReport& report,
                     const ConvertProgress& progress) {
  const Result<Checkpoint> opened = Checkpoint::open(folder);
  if (!opened.ok()) return {};  // a problem that check_folder() has told
  const Checkpoint& checkpoint = opened.value();
  const auto tensors = checkpoint.tensors();
  std::mutex mutex;  // guards `report`, `done` and the progress callback
  uint64_t done = 0;
  std::atomic<bool> stopped{false};
  pool.run(int64_t(tensors.size()), [&](int64_t item, int) {
    if (stopped.load(std::memory_order_relaxed)) return;
    const StoredTensor& tensor = tensors[size_t(item)];
    const Status good = check_tensor(tensor);
    checkpoint.drop_pages(tensor, tensor.data);
    const std::lock_guard lock(mutex);
    if (!good.ok())
      report.problems.push_back(
          cat(tensor.path().string(), ": tensor ", tensor.name, ": ", good.failure().message));
    done += tensor.data.size();
    if (!progress(done, checkpoint.total_bytes())) stopped.store(true);
  });
  if (stopped) return error("interrupted");
  std::sort(report.problems.begin(), report.problems.end());
  return {};
}

}  // namespace slip
