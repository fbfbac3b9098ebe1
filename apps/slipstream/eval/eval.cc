#include "slipstream/eval/eval.h"

#include <iostream>
#include <iterator>

#include "base/files.h"
#include "models/model_source.h"
#include "slipstream/common/loading_bar.h"
#include "slipstream/common/setting_flags.h"
#include "slipstream/eval/stats.h"

namespace slip {
namespace {

// Rows of logits computed together; 64 rows of a 248,320-token vocabulary are 64 MB.
constexpr int64_t kEvaluationRows = 64;

}  // namespace

Result<std::vector<int32_t>> token_ids(const JsonArray& list, const std::string& source) {
  std::vector<int32_t> ids;
  for (const Json& value : list) {
    if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() > INT32_MAX)
      return error(source, ": expected token ids, which are whole numbers from 0 on, found ",
                   value.is_number() ? dump_json(value) : describe_json_kind(value));
    ids.push_back(int32_t(value.get_int64()));
  }
  return ids;
}

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
      SLIP_TRY(std::vector<int32_t> ids, token_ids(list.get_array(), path));
      lists.push_back(std::move(ids));
    }
    return lists;
  }
  SLIP_TRY(std::vector<int32_t> ids, token_ids(array, path));
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
  Result<std::unique_ptr<Engine>> engine =
      Engine::load(source, options, *backend.ops, *backend.pool, loading_bar(flags.name()));
  if (engine.ok() || flags.context) return engine;
  return advise_on_context(std::move(engine).failure(), needs.advice);
}

Result<Evaluation> load_for_evaluation(const ModelFlags& flags, const EvaluationNeeds& needs) {
  Evaluation evaluation;
  SLIP_TRY(evaluation.backend, make_backend(flags));
  SLIP_TRY(evaluation.engine, load_engine(evaluation.backend, flags, needs));
  return evaluation;
}

Status feed_rows(Session& session, std::span<const int32_t> ids, EachRow each) {
  Status numbers;
  SLIP_TRY_STATUS(session.feed_each(
      ids, [&](int64_t position, std::span<float> logits, std::span<const float> hidden) {
        if (!numbers.ok()) return;
        numbers = check_logits(logits);
        if (numbers.ok()) return each(position, logits, hidden);
        numbers = std::move(numbers).failure().in(cat("position ", position));
      }));
  return numbers;
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
