#include "convert/gguf_file.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/files.h"

namespace slip {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint64_t kAlignment = 32;  // what readers assume where the metadata does not say

// Numbers of types in metadata.
enum : uint32_t { kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9 };

uint64_t aligned(uint64_t offset) { return (offset + kAlignment - 1) / kAlignment * kAlignment; }

template <class Number>
void put(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void put_text(std::string& out, std::string_view text) {
  put(out, uint64_t(text.size()));
  out += text;
}

}  // namespace

const char* name_of(GgufType type) {
  switch (type) {
    case GgufType::f32: return "F32";
    case GgufType::f16: return "F16";
    case GgufType::q4_0: return "Q4_0";
    case GgufType::bf16: return "BF16";
  }
  unreachable("GgufType");
}

uint64_t gguf_bytes(GgufType type, int64_t values) {
  switch (type) {
    case GgufType::f32: return uint64_t(values) * 4;
    case GgufType::f16:
    case GgufType::bf16: return uint64_t(values) * 2;
    case GgufType::q4_0: return uint64_t(values / kGgufBlock) * kGgufBlockBytes;
  }
  unreachable("GgufType");
}

uint64_t GgufTensor::bytes() const {
  int64_t values = 1;
  for (const int64_t size : shape) values *= size;
  return gguf_bytes(type, values);
}

void GgufMetadata::begin(std::string_view key, uint32_t type) {
  ++count_;
  put_text(bytes_, key);
  put(bytes_, type);
}

void GgufMetadata::add(std::string_view key, std::string_view text) {
  begin(key, kString);
  put_text(bytes_, text);
}

void GgufMetadata::add(std::string_view key, uint32_t number) {
  begin(key, kU32);
  put(bytes_, number);
}

void GgufMetadata::add(std::string_view key, float number) {
  begin(key, kF32);
  put(bytes_, number);
}

void GgufMetadata::add(std::string_view key, bool flag) {
  begin(key, kBool);
  put(bytes_, uint8_t(flag));
}

void GgufMetadata::add(std::string_view key, std::span<const int32_t> numbers) {
  begin(key, kArray);
  put(bytes_, uint32_t(kI32));
  put(bytes_, uint64_t(numbers.size()));
  for (const int32_t number : numbers) put(bytes_, number);
}

void GgufMetadata::add(std::string_view key, std::span<const std::string> texts) {
  begin(key, kArray);
  put(bytes_, uint32_t(kString));
  put(bytes_, uint64_t(texts.size()));
  for (const std::string& text : texts) put_text(bytes_, text);
}

Result<GgufWriter> GgufWriter::create(const std::filesystem::path& path,
                                      const GgufMetadata& metadata,
                                      std::vector<GgufTensor> tensors) {
  std::error_code absent;
  if (std::filesystem::exists(path, absent))
    return error(path.string(), " exists already; remove it, or choose another name");
  std::string head = "GGUF";
  put(head, kVersion);
  put(head, uint64_t(tensors.size()));
  put(head, metadata.count());
  head += metadata.bytes();
  uint64_t offset = 0;
  for (const GgufTensor& tensor : tensors) {
    put_text(head, tensor.name);
    put(head, uint32_t(tensor.shape.size()));
    for (size_t i = tensor.shape.size(); i-- > 0;) put(head, uint64_t(tensor.shape[i]));
    put(head, uint32_t(tensor.type));
    put(head, offset);
    offset = aligned(offset + tensor.bytes());
  }
  head.resize(aligned(head.size()));

  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
  SLIP_TRY(const uint64_t room, free_disk_bytes(folder));
  if (head.size() + offset > room)
    return error(path.string(), " takes ", head.size() + offset, " bytes, but only ", room,
                 " are free there");
  // One name for all runs, so that a new one takes the place of one that was killed.
  SLIP_TRY(NewFile file,
           NewFile::create(path, 0644, folder / cat(".", path.filename().string(), ".partial")));
  GgufWriter writer(std::move(file), std::move(tensors));
  SLIP_TRY_STATUS(writer.write(std::as_bytes(std::span(head))));
  return writer;
}

Status GgufWriter::write(std::span<const std::byte> bytes) {
  SLIP_TRY_STATUS(file_.write(position_, bytes));
  position_ += bytes.size();
  return {};
}

Status GgufWriter::pad_to_alignment() {
  static constexpr std::byte kZeros[kAlignment] = {};
  return write(std::span(kZeros).first(size_t(aligned(position_) - position_)));
}

Status GgufWriter::append(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    check(current_ < tensors_.size(), "bytes behind the last tensor");
    const uint64_t missing = tensors_[current_].bytes() - current_filled_;
    const size_t part = size_t(std::min<uint64_t>(missing, bytes.size()));
    SLIP_TRY_STATUS(write(bytes.first(part)));
    written_ += part;
    current_filled_ += part;
    bytes = bytes.subspan(part);
    if (part < missing) return {};
    SLIP_TRY_STATUS(pad_to_alignment());
    ++current_;
    current_filled_ = 0;
  }
  return {};
}

Status GgufWriter::finish() {
  check(current_ == tensors_.size(), "a GGUF file without the bytes of all tensors");
  return file_.finish();
}

}  // namespace slip
