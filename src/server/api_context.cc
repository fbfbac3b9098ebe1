#include "server/api_context.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace slip {
namespace {

// A client could otherwise fill the memory, and the log, with names.
constexpr size_t kMostNotes = 200;

// Parsed, each may take a hundred bytes, where two or three of the body suffice to write it.
constexpr size_t kMostValues = 1'000'000;

// Counts what begins a value that has others beside or around it.
bool has_more_values(std::string_view json, size_t most) {
  size_t values = 1;
  bool in_string = false;
  for (size_t i = 0; i < json.size() && values <= most; ++i) {
    const char byte = json[i];
    if (byte == '"') in_string = !in_string;
    if (in_string)
      i += byte == '\\';
    else
      values += byte == ',' || byte == '[' || byte == '{';
  }
  return values > most;
}

}  // namespace

ApiContext::ApiContext(ServedModel served, ApiOptions choices)
    : model(std::move(served)),
      options(std::move(choices)),
      limit(*model.tokenizer, [this] { return context(); }),
      prompts(model, options.strict_template, &limit),
      constraints(model) {
  check(!model.names.empty(), "a served model has no name");
}

int64_t ApiContext::context() const {
  const Answerer* engine = answerer.load();
  return engine ? engine->context() : model.context;
}

ApiResult<std::string> ApiContext::served_name(const std::string& asked) const {
  if (asked.empty()) return model.names[0];
  if (std::find(model.names.begin(), model.names.end(), asked) != model.names.end()) return asked;
  std::string served;
  for (const std::string& name : model.names) served += (served.empty() ? "'" : ", '") + name + "'";
  ApiError error = not_found(cat("the model '", asked, "' does not exist; served are: ", served),
                             "model_not_found");
  error.param = "model";
  return error;
}

void ApiContext::note_unknown(const std::string& endpoint, const std::vector<std::string>& names) {
  if (!options.log) return;
  for (const std::string& name : names) {
    constexpr size_t kLongestName = 64;
    const std::string shown = printable_line(name, kLongestName);
    {
      const std::lock_guard lock(mutex_);
      if (noted_.size() >= kMostNotes || !noted_.insert(cat(endpoint, " ", shown)).second) continue;
    }
    options.log(cat(endpoint, ": the field '", shown, "' is not known and ignored"));
  }
}

ApiResult<JsonObject> read_body(const HttpRequest& request) {
  if (!is_valid_utf8(request.body)) return bad_request("the body is not valid UTF-8");
  if (has_more_values(request.body, kMostValues))
    return bad_request(cat("the body has more than ", kMostValues, " JSON values"));
  Result<Json> parsed = parse_json(request.body, "request body");
  if (!parsed.ok()) return bad_request(parsed.failure().message);
  if (!parsed.value().is_object())
    return bad_request(
        cat("the body must be a JSON object, but is ", describe_json_kind(parsed.value())));
  return std::move(parsed.value().get_object());
}

}  // namespace slip
