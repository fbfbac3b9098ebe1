#include "checkpoint/safetensors.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "checkpoint/json_visitor.h"

namespace slip {
namespace {

constexpr uint64_t kLengthBytes = 8;
// PyTorch's own limit is 64; real weights have at most five. It bounds what a header can allocate.
constexpr size_t kMaxDimensions = 16;

// Collects the entries of a header. Offsets are as in the header: relative to the first data byte.
class HeaderVisitor : public JsonVisitor {
 public:
  SafetensorsHeader take() { return std::move(header_); }

  Status begin_object() override {
    if (depth_ == 2 && !in_metadata_) return wrong_field("an object");
    if (depth_ == 3 && !in_metadata_) return wrong_element("an object");
    ++depth_;
    return {};
  }

  Status end_object() override {
    --depth_;
    if (depth_ != 1) return {};
    if (std::exchange(in_metadata_, false)) return {};
    return finish_tensor();
  }

  Status begin_list() override {
    if (depth_ == 0) return error("the header is a list, expected an object");
    if (depth_ == 1) return error(entry_label(), ": expected an object, found a list");
    if (!in_metadata_) {
      if (depth_ == 2 && field_ == Field::dtype) return wrong_field("a list");
      if (depth_ == 3) return wrong_element("a list");
    }
    ++depth_;
    return {};
  }

  Status end_list() override {
    --depth_;
    return {};
  }

  Status key(std::string_view name) override {
    if (depth_ == 1) return begin_entry(name);
    if (in_metadata_) {
      at_format_ = depth_ == 2 && name == "format";
      return {};
    }
    return begin_field(name);
  }

  Status scalar(const JsonScalar& value) override {
    if (depth_ == 0)
      return error("the header is ", describe_json_scalar(value), ", expected an object");
    if (depth_ == 1)
      return error(entry_label(), ": expected an object, found ", describe_json_scalar(value));
    if (in_metadata_) {
      const auto* text = std::get_if<std::string_view>(&value);
      if (depth_ == 2 && at_format_ && text) header_.format = *text;
      return {};
    }
    if (depth_ == 3) return add_element(value);
    if (field_ != Field::dtype) return wrong_field(describe_json_scalar(value));
    const auto* text = std::get_if<std::string_view>(&value);
    type_ = text ? parse_stored_type(*text) : std::nullopt;
    if (!type_) return wrong_field(describe_json_scalar(value));
    return {};
  }

 private:
  enum class Field { dtype, shape, data_offsets };

  std::string tensor() const { return quote_for_message(entry_.name); }

  std::string entry_label() const {
    return in_metadata_ ? "__metadata__" : cat("tensor ", tensor());
  }

  static const char* field_name(Field field) {
    switch (field) {
      case Field::dtype: return "dtype";
      case Field::shape: return "shape";
      case Field::data_offsets: return "data_offsets";
    }
    unreachable("Field");
  }

  static std::string expected_of(Field field) {
    switch (field) {
      case Field::dtype: return cat("one of ", stored_type_names());
      case Field::shape: return "a list of non-negative integers";
      case Field::data_offsets: return "a list of two non-negative integers";
    }
    unreachable("Field");
  }

  Error wrong_field(const std::string& found) const {
    return error("tensor ", tensor(), ": ", field_name(field_), ": expected ", expected_of(field_),
                 ", found ", found);
  }
  Error wrong_element(const std::string& found) const {
    return wrong_field(cat(found, " in the list"));
  }

  Status begin_entry(std::string_view name) {
    if (name == "__metadata__") {
      if (std::exchange(had_metadata_, true)) return error("__metadata__ appears twice");
      in_metadata_ = true;
      return {};
    }
    entry_ = TensorEntry{};
    entry_.name = name;
    type_.reset();
    offsets_.clear();
    std::fill(std::begin(seen_), std::end(seen_), false);
    return {};
  }

  Status begin_field(std::string_view name) {
    for (const Field field : {Field::dtype, Field::shape, Field::data_offsets}) {
      if (name != field_name(field)) continue;
      if (std::exchange(seen_[size_t(field)], true))
        return error("tensor ", tensor(), ": ", name, " appears twice");
      field_ = field;
      return {};
    }
    return error("tensor ", tensor(), ": expected dtype, shape and data_offsets, found the key ",
                 quote_for_message(name));
  }

  Status add_element(const JsonScalar& value) {
    const auto* number = std::get_if<int64_t>(&value);
    if (!number || *number < 0) return wrong_element(describe_json_scalar(value));
    std::vector<int64_t>& list = field_ == Field::shape ? entry_.shape : offsets_;
    list.push_back(*number);
    const size_t longest = field_ == Field::shape ? kMaxDimensions : 2;
    if (list.size() > longest)
      return error("tensor ", tensor(), ": ", field_name(field_), ": expected at most ", longest,
                   " numbers, found more");
    return {};
  }

  Status finish_tensor() {
    for (const Field field : {Field::dtype, Field::shape, Field::data_offsets})
      if (!seen_[size_t(field)])
        return error("tensor ", tensor(), ": ", field_name(field), " is missing; expected ",
                     expected_of(field));
    if (offsets_.size() != 2 || offsets_[0] > offsets_[1])
      return error("tensor ", tensor(), ": data_offsets: expected begin and end, found ",
                   describe_shape(offsets_));
    entry_.type = *type_;
    entry_.offset = uint64_t(offsets_[0]);
    entry_.bytes = uint64_t(offsets_[1]) - entry_.offset;

    int64_t bytes = bytes_per_value(entry_.type);
    for (const int64_t size : entry_.shape)
      if (__builtin_mul_overflow(bytes, size, &bytes)) return wrong_size("more than 2^63");
    if (uint64_t(bytes) != entry_.bytes) return wrong_size(cat(bytes));
    header_.tensors.push_back(std::move(entry_));
    return {};
  }

  Error wrong_size(const std::string& needed) const {
    return error("tensor ", tensor(), ": ", stored_type_name(entry_.type), " ",
                 describe_shape(entry_.shape), " needs ", needed, " bytes, data_offsets ",
                 describe_shape(offsets_), " give ", entry_.bytes);
  }

  SafetensorsHeader header_;
  int depth_ = 0;  // 1 in the header, 2 in a tensor's object, 3 in one of its lists
  bool in_metadata_ = false;
  bool had_metadata_ = false;
  bool at_format_ = false;
  TensorEntry entry_;
  Field field_ = Field::dtype;
  bool seen_[3] = {};
  std::optional<StoredType> type_;
  std::vector<int64_t> offsets_;
};

std::string describe_range(const TensorEntry& entry) {
  return cat("tensor ", quote_for_message(entry.name), " with data_offsets [", entry.offset, ", ",
             entry.offset + entry.bytes, "]");
}

// The bytes after the header must be exactly the tensors', each once.
Status check_ranges(std::vector<TensorEntry>& tensors, uint64_t data_begin, uint64_t file_size) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  uint64_t end = 0;
  const TensorEntry* previous = nullptr;
  for (const TensorEntry& entry : tensors) {
    if (entry.offset + entry.bytes > file_size - data_begin)
      return error("truncated: ", describe_range(entry), " needs a file of at least ",
                   data_begin + entry.offset + entry.bytes, " bytes, found ", file_size,
                   "; download it again");
    if (entry.offset < end)
      return error(describe_range(entry), " overlaps ", describe_range(*previous));
    if (entry.offset > end)
      return error(describe_range(entry), ": expected to begin at ", end,
                   "; the bytes before it belong to no tensor");
    end = entry.offset + entry.bytes;
    previous = &entry;
  }
  if (end != file_size - data_begin)
    return error("trailing bytes: the header describes a file of ", data_begin + end,
                 " bytes, found ", file_size);
  return {};
}

Status check_names(const std::vector<TensorEntry>& tensors) {
  std::unordered_set<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorEntry& entry : tensors)
    if (!names.insert(entry.name).second)
      return error("tensor ", quote_for_message(entry.name), " appears twice in the header");
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> start,
                                                   uint64_t file_size, const std::string& source) {
  if (file_size < kLengthBytes || start.size() < kLengthBytes)
    return error(source, ": truncated: expected at least ", kLengthBytes, " bytes, found ",
                 std::min<uint64_t>(file_size, start.size()));
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= uint64_t(start[i]) << (8 * i);
  if (length > kMaxSafetensorsHeader)
    return error(source, ": not a safetensors file: header length: expected at most ",
                 kMaxSafetensorsHeader, ", found ", length);
  const uint64_t data_begin = kLengthBytes + length;
  if (data_begin > file_size || data_begin > start.size())
    return error(source, ": truncated: the header ends at byte ", data_begin,
                 ", the file has only ", std::min<uint64_t>(file_size, start.size()));

  const std::string_view json(reinterpret_cast<const char*>(start.data()) + kLengthBytes, length);
  HeaderVisitor visitor;
  SLIP_TRY_STATUS(visit_json(json, cat(source, ": header"), visitor));
  SafetensorsHeader header = visitor.take();
  if (auto status = check_names(header.tensors); !status.ok())
    return std::move(status).failure().in(source);
  if (auto status = check_ranges(header.tensors, data_begin, file_size); !status.ok())
    return std::move(status).failure().in(source);
  for (TensorEntry& entry : header.tensors) entry.offset += data_begin;
  return header;
}

}  // namespace slip
