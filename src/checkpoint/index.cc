#include "checkpoint/index.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "checkpoint/json_visitor.h"

namespace slip {
namespace {

constexpr std::string_view kExpected =
    "expected {\"weight_map\": {tensor: file, ...}} as written by Hugging Face";

bool is_plain_file_name(std::string_view name) {
  return name.ends_with(".safetensors") && !name.starts_with('.') &&
         std::none_of(name.begin(), name.end(),
                      [](char c) { return c == '/' || c == '\\' || uint8_t(c) < 32; });
}

class IndexVisitor : public JsonVisitor {
 public:
  Result<SafetensorsIndex> finish() {
    if (!had_map_) return error("weight_map is missing; ", kExpected);
    auto& entries = index_.entries;
    std::sort(entries.begin(), entries.end(),
              [](const IndexEntry& a, const IndexEntry& b) { return a.tensor < b.tensor; });
    const auto twice = std::adjacent_find(
        entries.begin(), entries.end(),
        [](const IndexEntry& a, const IndexEntry& b) { return a.tensor == b.tensor; });
    if (twice != entries.end())
      return error("weight_map: tensor ", quote_for_message(twice->tensor), " appears twice");
    return std::move(index_);
  }

  Status begin_object() override {
    if (in_map_ && depth_ >= 2) return wrong_file("an object");
    ++depth_;
    return {};
  }

  Status end_object() override {
    if (--depth_ == 1) in_map_ = false;
    return {};
  }

  Status begin_list() override {
    if (depth_ == 0) return error("the file is a list; ", kExpected);
    if (in_map_ && depth_ == 1) return error("weight_map is a list; ", kExpected);
    if (in_map_) return wrong_file("a list");
    ++depth_;
    return {};
  }

  Status end_list() override {
    --depth_;
    return {};
  }

  Status key(std::string_view name) override {
    if (depth_ == 1) {
      in_map_ = name == "weight_map";
      if (in_map_ && std::exchange(had_map_, true)) return error("weight_map appears twice");
    } else if (in_map_) {
      tensor_ = name;
    }
    return {};
  }

  Status scalar(const JsonScalar& value) override {
    if (depth_ == 0) return error("the file is ", describe_json_scalar(value), "; ", kExpected);
    if (!in_map_) return {};
    if (depth_ == 1) return error("weight_map is ", describe_json_scalar(value), "; ", kExpected);
    const auto* file = std::get_if<std::string_view>(&value);
    if (!file || !is_plain_file_name(*file)) return wrong_file(describe_json_scalar(value));
    const auto [place, added] = file_numbers_.try_emplace(std::string(*file), index_.files.size());
    if (added) index_.files.emplace_back(*file);
    index_.entries.push_back({std::move(tensor_), place->second});
    return {};
  }

 private:
  Error wrong_file(const std::string& found) const {
    return error("weight_map: tensor ", quote_for_message(tensor_),
                 ": expected the name of a .safetensors file in this folder, found ", found);
  }

  SafetensorsIndex index_;
  std::unordered_map<std::string, size_t> file_numbers_;
  int depth_ = 0;
  bool in_map_ = false;
  bool had_map_ = false;
  std::string tensor_;
};

}  // namespace

Result<SafetensorsIndex> parse_index(std::string_view text, const std::string& source) {
  IndexVisitor visitor;
  SLIP_TRY_STATUS(visit_json(text, source, visitor));
  Result<SafetensorsIndex> index = visitor.finish();
  if (!index.ok()) return std::move(index).failure().in(source);
  return index;
}

}  // namespace slip
