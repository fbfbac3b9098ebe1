#include <unistd.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <set>
#include <system_error>

#include "base/json.h"
#include "checkpoint/safetensors.h"

namespace slip {
namespace {

using Order = std::vector<const TensorToWrite*>;

Status check_sizes(std::span<const TensorToWrite> tensors) {
  std::set<std::string_view> names;
  for (const TensorToWrite& tensor : tensors) {
    if (!names.insert(tensor.name).second) return error("tensor ", tensor.name, " is given twice");
    int64_t bytes = bytes_per_value(tensor.type);
    for (const int64_t size : tensor.shape)
      if (size < 0 || __builtin_mul_overflow(bytes, size, &bytes))
        return error("tensor ", tensor.name, ": bad shape ", describe_shape(tensor.shape));
    if (uint64_t(bytes) != tensor.data.size())
      return error("tensor ", tensor.name, ": ", stored_type_name(tensor.type), " ",
                   describe_shape(tensor.shape), " needs ", bytes, " bytes, found ",
                   tensor.data.size());
  }
  return {};
}

Order order_for_alignment(std::span<const TensorToWrite> tensors) {
  Order order;
  for (const TensorToWrite& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return bytes_per_value(a->type) > bytes_per_value(b->type);
  });
  return order;
}

// The length and the JSON, padded so that the data begins at a multiple of eight.
std::string header_of(const Order& order, std::string_view format) {
  JsonObject header;
  if (!format.empty()) header["__metadata__"] = {{"format", std::string(format)}};
  uint64_t begin = 0;
  for (const TensorToWrite* tensor : order) {
    const uint64_t end = begin + tensor->data.size();
    header[tensor->name] = {
        {"dtype", std::string(stored_type_name(tensor->type))},
        {"shape", JsonArray(tensor->shape.begin(), tensor->shape.end())},
        {"data_offsets", {begin, end}},
    };
    begin = end;
  }
  std::string json = boost::json::serialize(header);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += char(uint64_t(json.size()) >> (8 * i));
  return bytes + json;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

// Not write_file_atomically: that takes one string, and the logits of a long prompt are gigabytes.
Status write_pieces(const std::filesystem::path& path, const std::string& header,
                    const Order& order) {
  const auto failure = [&](const char* doing) {
    return error(path.string(), ": cannot ", doing, ": ", std::generic_category().message(errno));
  };
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "wb"));
  if (!file) return failure("create");
  const auto write = [&](const void* data, size_t size) {
    return size == 0 || std::fwrite(data, 1, size, file.get()) == size;
  };
  if (!write(header.data(), header.size())) return failure("write");
  for (const TensorToWrite* tensor : order)
    if (!write(tensor->data.data(), tensor->data.size())) return failure("write");
  if (std::fclose(file.release()) != 0) return failure("write");
  return {};
}

}  // namespace

Status write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                         std::string_view format) {
  if (auto status = check_sizes(tensors); !status.ok())
    return std::move(status).failure().in(path.string());
  const Order order = order_for_alignment(tensors);
  std::filesystem::path temporary = path;
  temporary += cat(".tmp", ::getpid());
  Status written = write_pieces(temporary, header_of(order, format), order);
  std::error_code code;
  if (written.ok()) {
    std::filesystem::rename(temporary, path, code);
    if (code) written = error(path.string(), ": cannot replace: ", code.message());
  }
  if (!written.ok()) std::filesystem::remove(temporary, code);
  return written;
}

}  // namespace slip
