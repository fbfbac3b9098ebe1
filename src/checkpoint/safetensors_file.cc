#include "checkpoint/safetensors_file.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <numeric>
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
  std::vector<Place> places(tensors.size());
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
    places[index] = {begin, bytes};
    begin += bytes;
  }

  // The length and the JSON, padded so that the data begins at a multiple of eight.
  std::string json = boost::json::serialize(header);
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string start;
  for (int i = 0; i < 8; ++i) start += char(uint64_t(json.size()) >> (8 * i));
  start += json;
  for (Place& place : places) place.begin += start.size();
  SLIP_TRY(NewFile file, NewFile::create(path));
  SLIP_TRY_STATUS(file.write(0, std::as_bytes(std::span(start))));
  return SafetensorsFile(std::move(file), std::move(places), begin);
}

Status SafetensorsFile::write(size_t tensor, uint64_t offset, std::span<const std::byte> bytes) {
  const Place& place = places_[tensor];
  check(offset + bytes.size() <= place.bytes && bytes.size() <= missing_,
        "SafetensorsFile::write: ", bytes.size(), " bytes at ", offset, " of ", place.bytes);
  SLIP_TRY_STATUS(file_.write(place.begin + offset, bytes));
  missing_ -= bytes.size();
  return {};
}

Status SafetensorsFile::finish() {
  check(missing_ == 0, "SafetensorsFile::finish: ", missing_, " bytes of ", file_.path().string(),
        " were not written");
  return file_.finish();
}

}  // namespace slip
