#include "server/api_answer_options.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace slip {
namespace {

template <class T>
void read_into(T& target, const std::optional<double>& value) {
  if (value) target = T(*value);
}

std::optional<int32_t> token_id(std::string_view text, int64_t vocabulary) {
  int32_t id = -1;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return id >= 0 && id < vocabulary ? std::optional(id) : std::nullopt;
}

void read_logit_bias(RequestFields& fields, int64_t vocabulary, SamplingOptions& sampling) {
  const JsonObject* biases = fields.object("logit_bias");
  if (!biases) return;
  if (biases->size() > 1024) fields.fail("logit_bias", "'logit_bias' has more than 1024 entries");
  RequestFields inner(*biases, "logit_bias");
  for (const auto& entry : *biases) {
    const std::string_view key(entry.key());
    const std::optional<int32_t> id = token_id(key, vocabulary);
    if (!id) {
      fields.fail("logit_bias", cat("'logit_bias' has the key '", key,
                                    "', which is no token id below ", vocabulary));
      return;
    }
    if (const auto bias = inner.number(key, {-100, 100}))
      sampling.logit_bias.emplace_back(*id, float(*bias));
  }
  if (inner.failure()) fields.fail(*inner.failure());
}

void read_seed(RequestFields& fields, AnswerOptions& options) {
  const Json* seed = fields.value("seed");
  if (seed && seed->is_uint64()) {
    options.sampling.seed = seed->get_uint64();
    options.has_seed = true;
  } else if (const auto number = fields.integer("seed")) {
    // llama.cpp's clients write -1 for "any".
    options.has_seed = *number != -1;
    options.sampling.seed = uint64_t(*number);
  }
}

void read_sampling(RequestFields& fields, int64_t vocabulary, AnswerOptions& options) {
  SamplingOptions& sampling = options.sampling;
  read_into(sampling.temperature, fields.number("temperature", {0, 2}));
  read_into(sampling.top_p, fields.number("top_p", {0, 1}));
  read_into(sampling.min_p, fields.number("min_p", {0, 1}));
  if (const auto top_k = fields.integer("top_k", {-1, 1 << 20}))
    sampling.top_k = std::max(0, int(*top_k));
  read_into(sampling.presence_penalty, fields.number("presence_penalty", {-2, 2}));
  read_into(sampling.frequency_penalty, fields.number("frequency_penalty", {-2, 2}));
  for (const std::string_view name : {"repetition_penalty", "repeat_penalty"})
    read_into(sampling.repetition_penalty, fields.number(name, {0.01, 10}));
  read_logit_bias(fields, vocabulary, sampling);
  read_seed(fields, options);
}

AnswerForm schema_form(const Json& schema) {
  return {.kind = AnswerForm::Kind::json_schema, .schema = schema};
}

AnswerForm pattern_form(AnswerForm::Kind kind, std::string pattern) {
  return {.kind = kind, .pattern = std::move(pattern)};
}

// vLLM writes a schema as an object or as the text of one.
AnswerForm vllm_schema_form(RequestFields& fields, std::string_view key, const Json& schema) {
  if (!schema.is_string()) return schema_form(schema);
  Result<Json> parsed = parse_json(schema.get_string(), std::string(key));
  if (parsed.ok()) return schema_form(parsed.value());
  fields.fail(key, parsed.failure().message);
  return {};
}

// One of {json, regex, choice, grammar} under names with `prefix` before them.
std::optional<AnswerForm> read_constraint_fields(RequestFields& fields, const std::string& prefix) {
  using Kind = AnswerForm::Kind;
  std::optional<AnswerForm> form;
  const auto take = [&](const std::string& key, AnswerForm found) {
    if (form)
      fields.fail(key,
                  cat("'", fields.path_of(key), "' and '", form->param, "' exclude each other"));
    found.param = fields.path_of(key);
    form = std::move(found);
  };
  if (const Json* schema = fields.value(prefix + "json"))
    take(prefix + "json", vllm_schema_form(fields, prefix + "json", *schema));
  if (auto pattern = fields.text(prefix + "regex"))
    take(prefix + "regex", pattern_form(Kind::regex, std::move(*pattern)));
  if (fields.value(prefix + "choice")) {
    AnswerForm choice = {.kind = Kind::choice};
    choice.choices = fields.texts(prefix + "choice", 1024);
    if (choice.choices.empty()) fields.fail(prefix + "choice", "there is nothing to choose from");
    take(prefix + "choice", std::move(choice));
  }
  if (auto grammar = fields.text(prefix + "grammar"))
    take(prefix + "grammar", pattern_form(Kind::grammar, std::move(*grammar)));
  if (fields.boolean(prefix + "json_object").value_or(false))
    take(prefix + "json_object", {.kind = Kind::json_object});
  return form;
}

}  // namespace

AnswerOptions read_answer_options(RequestFields& fields, const SamplingOptions& defaults,
                                  int64_t vocabulary) {
  AnswerOptions options;
  options.sampling = defaults;
  read_sampling(fields, vocabulary, options);
  options.min_tokens = fields.integer("min_tokens", {0, 1 << 30}).value_or(0);
  options.stop = fields.texts("stop", kMostStops);
  options.stop_ids = fields.token_ids("stop_token_ids", vocabulary);
  if (options.stop_ids.size() > kMostStopIds)
    fields.fail("stop_token_ids", cat("'stop_token_ids' has more than ", kMostStopIds, " entries"));
  options.ignore_eos = fields.boolean("ignore_eos").value_or(false);
  options.choices = int(fields.integer("n", {1, kMostChoices}).value_or(1));
  options.cache_salt = fields.text("cache_salt").value_or("");
  options.cache_prompt = fields.boolean("cache_prompt").value_or(true);
  // llama.cpp's. How many drafts pay is for the engine to say; a request may only do without.
  options.draft = fields.integer("speculative.n_max", {0, 1 << 30}).value_or(1) > 0;
  options.stream = fields.boolean("stream").value_or(false);
  if (const JsonObject* stream_options = fields.object("stream_options")) {
    RequestFields inner(*stream_options, "stream_options");
    options.include_usage = inner.boolean("include_usage").value_or(false);
    if (inner.failure()) fields.fail(*inner.failure());
  }
  options.return_token_ids = fields.boolean("return_token_ids").value_or(false);
  options.return_progress = fields.boolean("return_progress").value_or(false);
  options.timings_per_token = fields.boolean("timings_per_token").value_or(false);
  // Nothing to do about these: `user` and the like are for accounting, special tokens of an answer
  // end it, and requests are served in the order they come.
  fields.ignore({"user", "metadata", "store", "priority", "skip_special_tokens", "service_tier",
                 "safety_identifier", "prompt_cache_key", "spaces_between_special_tokens",
                 "include_stop_str_in_output"});
  return options;
}

std::optional<int64_t> read_max_tokens(RequestFields& fields,
                                       std::initializer_list<std::string_view> names,
                                       NoTokens none) {
  std::optional<int64_t> most;
  for (const std::string_view name : names) {
    const auto given = fields.integer(name, {-1, 1 << 30});
    if (given == 0 && none == NoTokens::refused)
      fields.fail(name, cat("'", name, "' must be at least 1, but is 0"));
    if (given) most = given;
  }
  return most;
}

AnswerForm read_format_object(RequestFields& format) {
  const auto type = format.one_of("type", {"text", "json_object", "json_schema"});
  if (!type) {
    if (!format.value("type")) format.fail("type", "'type' is missing");
    return {};
  }
  if (*type == "text") return {};
  AnswerForm form;
  // OpenAI wraps the schema in "json_schema", its responses endpoint does not, and llama.cpp takes
  // one beside "json_object".
  const JsonObject* wrapped = format.object("json_schema");
  const Json* schema = wrapped ? wrapped->if_contains("schema") : format.value("schema");
  if (schema && schema->is_null()) schema = nullptr;
  if (schema) form = schema_form(*schema);
  if (!schema && *type == "json_object") form.kind = AnswerForm::Kind::json_object;
  if (!schema && *type == "json_schema") format.fail("json_schema", "the schema is missing");
  const Json* strict = wrapped ? wrapped->if_contains("strict") : format.value("strict");
  form.strict = strict && strict->is_bool() && strict->get_bool();
  form.param = format.path_of(wrapped ? "json_schema.schema" : schema ? "schema" : "type");
  return form;
}

AnswerForm read_answer_form(RequestFields& fields) {
  AnswerForm form;
  const auto take = [&](std::optional<AnswerForm> found) {
    if (!found || found->kind == AnswerForm::Kind::text) return;
    if (form.kind != AnswerForm::Kind::text)
      fields.fail(bad_request(cat("'", found->param, "' and '", form.param, "' exclude each other"),
                              found->param));
    form = std::move(*found);
  };
  if (const JsonObject* format = fields.object("response_format")) {
    RequestFields inner(*format, "response_format");
    take(read_format_object(inner));
    if (inner.failure()) fields.fail(*inner.failure());
  }
  if (const JsonObject* outputs = fields.object("structured_outputs")) {
    RequestFields inner(*outputs, "structured_outputs");
    take(read_constraint_fields(inner, ""));
    if (inner.failure()) fields.fail(*inner.failure());
  }
  take(read_constraint_fields(fields, "guided_"));
  if (const Json* schema = fields.value("json_schema")) {
    AnswerForm found = schema_form(*schema);
    found.param = "json_schema";
    take(std::move(found));
  }
  if (auto grammar = fields.text("grammar"); grammar && !grammar->empty()) {
    AnswerForm found = pattern_form(AnswerForm::Kind::grammar, std::move(*grammar));
    found.param = "grammar";
    take(std::move(found));
  }
  return form;
}

}  // namespace slip
