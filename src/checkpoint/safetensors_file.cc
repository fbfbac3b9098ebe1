#include "checkpoint/safetensors_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <numeric>
#include <system_error>
#include <utility>

#include "base/json.h"

namespace slip {
namespace {

std::vector<size_t> order_for_alignment(std::span<const TensorDeclaration> tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return bytes_per_value(tensors[a].type) > bytes_per_value(tensors[b].type);
  });
  return order;
}

// All of them, at an offset of the file.
bool write_all(int fd, const char* data, size_t size, uint64_t offset) {
  while (size > 0) {
    const ssize_t count = ::pwrite(fd, data, size, off_t(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    data += count;
    size -= size_t(count);
    offset += uint64_t(count);
  }
  return true;
}

}  // namespace

uint64_t TensorDeclaration::bytes() const {
  int64_t count = bytes_per_value(type);
  for (const int64_t size : shape)
    check(size >= 0 && !__builtin_mul_overflow(count, size, &count), "tensor ", name,
          ": bad shape ", describe_shape(shape));
  return uint64_t(count);
}

Result<SafetensorsFile> SafetensorsFile::create(const std::filesystem::path& path,
                                                std::span<const TensorDeclaration> tensors,
                                                std::string_view format) {
  SafetensorsFile file;
  file.path_ = path;
  file.temporary_ = path;
  file.temporary_ += cat(".tmp", ::getpid());
  file.places_.resize(tensors.size());
  JsonObject header;
  if (!format.empty()) header["__metadata__"] = {{"format", std::string(format)}};
  uint64_t begin = 0;
  for (const size_t index : order_for_alignment(tensors)) {
    const TensorDeclaration& tensor = tensors[index];
    const uint64_t bytes = tensor.bytes();
    const auto [place, added] = header.emplace(
        tensor.name, JsonObject{{"dtype", std::string(stored_type_name(tensor.type))},
                                {"shape", JsonArray(tensor.shape.begin(), tensor.shape.end())},
                                {"data_offsets", {begin, begin + bytes}}});
    if (!added) return error(path.string(), ": tensor ", tensor.name, " is given twice");
    file.places_[index] = {begin, bytes};
    begin += bytes;
  }
  file.missing_ = begin;

  std::string json = boost::json::serialize(header);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string start;
  for (int i = 0; i < 8; ++i) start += char(uint64_t(json.size()) >> (8 * i));
  start += json;
  for (Place& place : file.places_) place.begin += start.size();
  file.fd_ = ::open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file.fd_ < 0) return file.failure("create");
  if (!write_all(file.fd_, start.data(), start.size(), 0)) return file.failure("write");
  return file;
}

SafetensorsFile::SafetensorsFile(SafetensorsFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      places_(std::move(other.places_)),
      missing_(other.missing_) {}

SafetensorsFile::~SafetensorsFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

Error SafetensorsFile::failure(const char* doing) const {
  return error(path_.string(), ": cannot ", doing, ": ", std::generic_category().message(errno));
}

Status SafetensorsFile::write(size_t tensor, uint64_t offset, std::span<const std::byte> bytes) {
  const Place& place = places_[tensor];
  check(offset + bytes.size() <= place.bytes && bytes.size() <= missing_,
        "SafetensorsFile::write: ", bytes.size(), " bytes at ", offset, " of ", place.bytes);
  if (!write_all(fd_, reinterpret_cast<const char*>(bytes.data()), bytes.size(),
                 place.begin + offset))
    return failure("write");
  missing_ -= bytes.size();
  return {};
}

Status SafetensorsFile::finish() {
  check(missing_ == 0, "SafetensorsFile::finish: ", missing_, " bytes of ", path_.string(),
        " were not written");
  if (::fsync(fd_) != 0) return failure("write");
  const int fd = std::exchange(fd_, -1);
  const bool closed = ::close(fd) == 0;
  if (!closed || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    Error reason = failure("write");
    ::unlink(temporary_.c_str());
    return reason;
  }
  return {};
}

}  // namespace slip
