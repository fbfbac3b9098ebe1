#include "eval.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>

#include "backend.h"
#include "base/files.h"
#include "base/json.h"
#include "loading_bar.h"
#include "model_flags.h"
#include "models/model_source.h"

namespace slip {
namespace {

// Rows of logits computed together; 64 rows of a 248,320-token vocabulary are 64 MB.
constexpr int64_t kEvaluationRows = 64;

Result<std::vector<int32_t>> ids_from(const Json& json, const std::string& path) {
  std::vector<int32_t> ids;
  for (const Json& value : json.get_array()) {
    if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() > INT32_MAX)
      return error(path, ": expected a list of token ids, found ", describe_json_kind(value));
    ids.push_back(int32_t(value.get_int64()));
  }
  return ids;
}

}  // namespace

Result<std::vector<std::vector<int32_t>>> read_id_lists(const std::string& path) {
  SLIP_TRY(const std::string text, read_text_file(path));
  Result<Json> parsed = parse_json(text, path);
  if (!parsed.ok())
    return error(parsed.failure().message,
                 "; ids are a JSON list, as slipstream eval tokenize makes it of a text");
  Json json = std::move(parsed).value();
  if (json.is_object()) {  // as `eval tokenize` prints them
    Json* ids = json.get_object().if_contains("ids");
    if (!ids) return error(path, ": expected a list of token ids, found an object without \"ids\"");
    json = Json(std::move(*ids));
  }
  if (!json.is_array())
    return error(path, ": expected a list of token ids, found ", describe_json_kind(json));
  std::vector<std::vector<int32_t>> lists;
  const JsonArray& array = json.get_array();
  if (!array.empty() && array[0].is_array()) {
    for (const Json& list : array) {
      if (!list.is_array())
        return error(path, ": expected a list of lists, found ", describe_json_kind(list));
      SLIP_TRY(std::vector<int32_t> ids, ids_from(list, path));
      lists.push_back(std::move(ids));
    }
    return lists;
  }
  SLIP_TRY(std::vector<int32_t> ids, ids_from(json, path));
  lists.push_back(std::move(ids));
  return lists;
}

Result<std::vector<int32_t>> read_ids(const std::string& path) {
  SLIP_TRY(std::vector<std::vector<int32_t>> lists, read_id_lists(path));
  if (lists.size() != 1 || lists[0].empty())
    return error(path, ": expected one list of at least one token id");
  return std::move(lists[0]);
}

std::string read_stdin() {
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}

Result<std::unique_ptr<Engine>> load_engine(const Backend& backend, const ModelFlags& flags,
                                            const EvaluationNeeds& needs) {
  SLIP_TRY(const std::filesystem::path folder, locate_model(flags.model));
  SLIP_TRY(const ModelSource source, open_model(folder, flags));
  EngineOptions options;
  SLIP_TRY(options.memory, memory_request(flags));
  // Unless asked otherwise, what the weights say is measured, not what a cache makes of it.
  if (!options.memory.kv) options.memory.kv.emplace();
  if (!options.memory.context) options.memory.context = needs.context;
  options.weights = weight_choices(flags);
  if (needs.drafter) needs.drafter->apply_drafter(options.weights);
  options.with_drafter = needs.with_drafter;
  options.max_rows = kEvaluationRows;
  options.logit_rows = kEvaluationRows;
  return Engine::load(source, options, *backend.ops, *backend.pool,
                      loading_bar(folder.filename().string()));
}

Result<Evaluation> load_for_evaluation(const ModelFlags& flags, const EvaluationNeeds& needs) {
  Evaluation evaluation;
  SLIP_TRY(evaluation.backend, make_backend(flags));
  SLIP_TRY(evaluation.engine, load_engine(evaluation.backend, flags, needs));
  return evaluation;
}

std::function<void(int64_t done, int64_t total)> progress_line(const std::string& what) {
  if (!::isatty(STDERR_FILENO)) return [](int64_t, int64_t) {};
  return [what](int64_t done, int64_t total) {
    std::fprintf(stderr, "\r%s %lld of %lld ", what.c_str(), static_cast<long long>(done),
                 static_cast<long long>(total));
    if (done == total) std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
  };
}

std::vector<std::unique_ptr<Verb>> make_eval_verbs() {
  std::vector<std::unique_ptr<Verb>> verbs;
  verbs.push_back(make_eval_logits_verb());
  verbs.push_back(make_eval_mtp_verb());
  verbs.push_back(make_eval_ppl_verb());
  verbs.push_back(make_eval_accept_verb());
  verbs.push_back(make_eval_kl_verb());
  verbs.push_back(make_eval_needle_verb());
  verbs.push_back(make_eval_tokenize_verb());
  verbs.push_back(make_eval_detokenize_verb());
  verbs.push_back(make_eval_render_verb());
  return verbs;
}

}  // namespace slip
