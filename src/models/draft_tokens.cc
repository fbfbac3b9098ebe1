#include "models/draft_tokens.h"

#include <algorithm>
#include <set>
#include <span>
#include <tuple>

#include "base/files.h"
#include "base/json.h"
#include "checkpoint/json_visitor.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

Result<int32_t> token_id(const Json& value, int64_t vocabulary, const fs::path& path) {
  const int64_t* id = value.if_int64();
  if (!id || *id < 0 || *id >= vocabulary)
    return error(path.string(), ": expected token ids from 0 to ", vocabulary - 1, ", found ",
                 dump_json(value));
  return int32_t(*id);
}

Result<std::vector<int32_t>> read_ranking(const fs::path& path, int64_t vocabulary) {
  SLIP_TRY(const std::string text, read_text_file(path));
  SLIP_TRY(const Json json, parse_json(text, path.string()));
  if (!json.is_array() || json.get_array().empty())
    return error(path.string(), ": expected a list of token ids, found ",
                 json.is_array() ? "an empty one" : describe_json_kind(json));
  std::vector<int32_t> ids;
  std::set<int32_t> seen;
  for (const Json& value : json.get_array()) {
    SLIP_TRY(const int32_t id, token_id(value, vocabulary, path));
    if (!seen.insert(id).second) return error(path.string(), ": token id ", id, " is there twice");
    ids.push_back(id);
  }
  return ids;
}

// The ids in the list "added_tokens". The walk ends with that list: the vocabulary and the merges,
// megabytes which only the tokenizer needs, come after it.
class AddedTokenIds : public JsonVisitor {
 public:
  explicit AddedTokenIds(int64_t vocabulary) : vocabulary_(vocabulary) {}

  Status begin_object() override { return enter(); }
  Status end_object() override { return leave(); }
  Status begin_list() override { return enter(); }
  Status end_list() override { return leave(); }
  Status key(std::string_view name) override {
    if (depth_ == 1) in_list_ = name == "added_tokens";
    id_is_next_ = in_list_ && depth_ == 3 && name == "id";
    return {};
  }
  Status scalar(const JsonScalar& value) override {
    const auto* id = std::get_if<int64_t>(&value);
    // A tokenizer may name tokens that the model has no row for.
    if (id_is_next_ && id && *id >= 0 && *id < vocabulary_) ids.push_back(int32_t(*id));
    id_is_next_ = false;
    return {};
  }

  std::vector<int32_t> ids;

 private:
  Status enter() {
    ++depth_;
    id_is_next_ = false;
    return {};
  }
  Status leave() {
    if (--depth_ == 1 && in_list_) return error("all added tokens are known");
    return {};
  }

  int64_t vocabulary_;
  int depth_ = 0;  // 1: in the file's object, 2: in the list, 3: in a token
  bool in_list_ = false, id_is_next_ = false;
};

// In the order of the file, which lists the ends of texts and turns first. Whoever loads the
// tokenizer says what is wrong with it; here it is only asked for advice.
std::vector<int32_t> added_tokens(const fs::path& folder, int64_t vocabulary) {
  AddedTokenIds tokens(vocabulary);
  const fs::path path = folder / "tokenizer.json";
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok()) return {};
  const std::span<const std::byte> bytes = file.value().bytes();
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::ignore = visit_json(text, path.string(), tokens);
  return tokens.ids;
}

}  // namespace

Result<std::vector<int32_t>> choose_draft_tokens(const fs::path& folder, int64_t vocabulary,
                                                 int64_t count) {
  check(count >= kFewestDraftTokens, "a shortlist of ", count);
  if (count >= vocabulary) return std::vector<int32_t>{};
  const fs::path ranking = folder / "draft_tokens.json";
  std::error_code absent;
  if (fs::exists(ranking, absent)) {
    SLIP_TRY(std::vector<int32_t> ids, read_ranking(ranking, vocabulary));
    ids.resize(std::min(ids.size(), size_t(count)));
    if (int64_t(ids.size()) < kFewestDraftTokens)
      return error(ranking.string(), ": expected at least ", kFewestDraftTokens,
                   " token ids for drafts to choose between, found ", ids.size());
    std::ranges::sort(ids);
    return ids;
  }
  std::set<int32_t> chosen;
  for (const int32_t id : added_tokens(folder, vocabulary))
    if (int64_t(chosen.size()) < (count + 3) / 4) chosen.insert(id);
  for (int32_t id = 0; int64_t(chosen.size()) < count; ++id) chosen.insert(id);
  return std::vector<int32_t>(chosen.begin(), chosen.end());
}

std::vector<int32_t> lowest_tokens(int64_t vocabulary, int64_t count) {
  std::vector<int32_t> ids;
  for (int32_t id = 0; count < vocabulary && id < count; ++id) ids.push_back(id);
  return ids;
}

}  // namespace slip
