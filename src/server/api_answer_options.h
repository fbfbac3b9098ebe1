// How an answer is to be made and sent, whatever it answers: the fields that all endpoints share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/sampling.h"
#include "server/request_fields.h"

namespace slip {

// The form an answer must have.
struct AnswerForm {
  enum class Kind : uint8_t { text, json_object, json_schema, regex, choice, grammar };
  Kind kind = Kind::text;
  Json schema{};
  bool strict = false;
  std::string pattern{};               // of a regex or grammar
  std::vector<std::string> choices{};  // one of these
  std::string param{};                 // where the client asked for it
};

struct AnswerOptions {
  SamplingOptions sampling;
  bool has_seed = false;
  int64_t max_tokens = -1;  // -1: as many as fit
  int64_t min_tokens = 0;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_ids;  // besides the model's own
  bool ignore_eos = false;
  int choices = 1;
  int top_logprobs = -1;  // as in Request
  bool score_prompt = false;
  AnswerForm form;
  std::string cache_salt;
  bool cache_prompt = true;
  bool draft = true;

  bool stream = false;
  bool include_usage = false;
  bool return_token_ids = false;
  bool return_progress = false;
  bool timings_per_token = false;
};

inline constexpr int64_t kMostChoices = 8;
inline constexpr size_t kMostStops = 16;
inline constexpr size_t kMostStopIds = 64;
inline constexpr int64_t kMostLogprobs = 20;

// Everything but the limit on tokens, the log probabilities and the form, which endpoints spell
// differently. `vocabulary` bounds token ids.
AnswerOptions read_answer_options(RequestFields& fields, const SamplingOptions& defaults,
                                  int64_t vocabulary);

// The limit on tokens, whichever of its names it has; -1: as many as fit. Where there is more to
// send than the answer, none may be asked for.
enum class NoTokens : uint8_t { refused, allowed };
std::optional<int64_t> read_max_tokens(RequestFields& fields,
                                       std::initializer_list<std::string_view> names,
                                       NoTokens none = NoTokens::refused);

// response_format, structured_outputs, guided_*, and llama.cpp's json_schema and grammar.
AnswerForm read_answer_form(RequestFields& fields);

// {"type": "json_schema", ...} and its siblings, as response_format and text.format hold it.
AnswerForm read_format_object(RequestFields& format);

}  // namespace slip
