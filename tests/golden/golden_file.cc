#include "tests/golden/golden_file.h"

#include <algorithm>
#include <cstring>

#include "base/json.h"

namespace slip {
namespace {

MappedFile open_or_stop(const std::filesystem::path& path) {
  Result<MappedFile> file = MappedFile::open(path);
  check(file.ok(), file.ok() ? "" : file.failure().message);
  return std::move(file).value();
}

JsonArray prompts() {
  const std::filesystem::path path = golden_folder() / "minnow/prompts.json";
  const Result<std::string> text = read_text_file(path);
  check(text.ok(), "cannot read ", path.string());
  return parse_json(text.value(), path.string()).value().as_array();
}

}  // namespace

GoldenFile::GoldenFile(const std::filesystem::path& path) : file_(open_or_stop(path)) {
  header_ = parse_safetensors_header(file_.bytes(), file_.bytes().size(), path.string()).value();
}

const TensorEntry& GoldenFile::entry(const std::string& name) const {
  const auto place = std::ranges::find(header_.tensors, name, &TensorEntry::name);
  check(place != header_.tensors.end(), file_.path().string(), " has no array ", name);
  return *place;
}

bool GoldenFile::has(const std::string& name) const {
  return std::ranges::find(header_.tensors, name, &TensorEntry::name) != header_.tensors.end();
}

std::vector<float> GoldenFile::floats(const std::string& name) const {
  const TensorEntry& found = entry(name);
  check(found.type == StoredType::f32, name, " is not F32");
  std::vector<float> values(found.bytes / sizeof(float));
  std::memcpy(values.data(), file_.bytes().data() + found.offset, found.bytes);
  return values;
}

std::vector<int32_t> GoldenFile::ints(const std::string& name) const {
  const TensorEntry& found = entry(name);
  const std::byte* data = file_.bytes().data() + found.offset;
  if (found.type == StoredType::u16) {
    std::vector<uint16_t> narrow(found.bytes / sizeof(uint16_t));
    std::memcpy(narrow.data(), data, found.bytes);
    return {narrow.begin(), narrow.end()};
  }
  check(found.type == StoredType::i32, name, " is neither I32 nor U16");
  std::vector<int32_t> values(found.bytes / sizeof(int32_t));
  std::memcpy(values.data(), data, found.bytes);
  return values;
}

std::filesystem::path golden_folder() {
  return std::filesystem::path(SLIP_SOURCE_DIR) / "tests/data/golden";
}
std::filesystem::path minnow_folder() {
  return std::filesystem::path(SLIP_SOURCE_DIR) / "models/minnow";
}
std::filesystem::path shared_folder() { return SLIP_SHARED_DIR; }
bool has_shared() {
  return std::filesystem::exists(shared_folder() / "minnow/bf16/config.json") &&
         std::filesystem::exists(shared_folder() / "goldens/minnow/prompts.json");
}

std::vector<int32_t> prompt_ids(const std::string& name) {
  for (const Json& prompt : prompts()) {
    if (prompt.at("name").as_string() != name) continue;
    std::vector<int32_t> ids;
    for (const Json& id : prompt.at("ids").as_array()) ids.push_back(int32_t(id.as_int64()));
    return ids;
  }
  fail_check("no prompt is called " + name, SourceLocation::current());
}

std::vector<std::string> prompt_names() {
  std::vector<std::string> names;
  for (const Json& prompt : prompts()) names.emplace_back(prompt.at("name").as_string());
  return names;
}

}  // namespace slip
