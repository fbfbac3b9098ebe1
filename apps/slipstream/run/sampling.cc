#include "slipstream/run/sampling.h"

#include <charconv>
#include <random>

namespace slip {
namespace {

Result<std::pair<int32_t, float>> parse_bias(const std::string& text) {
  const Error wrong =
      error("--logit-bias is ID=BIAS, a token id and a number of -100 to 100, e.g. 1024=-5; not \"",
            text, "\"");
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return wrong;
  int32_t id = 0;
  const char* end = text.data() + equals;
  if (const auto parsed = std::from_chars(text.data(), end, id);
      parsed.ec != std::errc() || parsed.ptr != end || id < 0)
    return wrong;
  float bias = 0;
  const char* begin = end + 1;
  end = text.data() + text.size();
  if (begin < end && *begin == '+') ++begin;
  if (const auto parsed = std::from_chars(begin, end, bias);
      parsed.ec != std::errc() || parsed.ptr != end || !(bias >= -100 && bias <= 100))
    return wrong;
  return std::pair(id, bias);
}

Status check_range(const char* flag, const std::optional<double>& value, double min, double max) {
  if (!value || (*value >= min && *value <= max)) return {};
  return error(flag, " must be ", min, " to ", max, ", not ", *value);
}

Status check_least(const char* flag, const std::optional<int64_t>& value, int64_t min) {
  if (!value || (*value >= min && *value <= INT32_MAX)) return {};
  return error(flag, " must be at least ", min, " and fit into 31 bits, not ", *value);
}

// 32 bits: short enough to type again.
uint64_t random_seed() { return std::random_device{}(); }

}  // namespace

void SamplingFlags::add_to(Flags& flags) {
  flags.option("-n,--max-tokens", &max_tokens, "N",
               "Greatest length of the answer in tokens; default: until the context is full");
  flags.flag("--greedy", &greedy, "Always choose the most likely token");
  flags.option(
      "--temperature", &temperature, "T",
      "Randomness of the answer; 0: always the most likely token. The default of this and the "
      "next six flags is what the model's generation_config.json says");
  flags.option("--top-k", &top_k, "K", "Choose among the K most likely tokens; 0: among all");
  flags.option("--top-p", &top_p, "P",
               "Choose among the most likely tokens that together have probability P");
  flags.option("--min-p", &min_p, "P",
               "Leave out tokens that are less likely than P times the most likely one");
  flags.option(
      "--repetition-penalty", &repetition_penalty, "R",
      "Make tokens that the prompt or the answer already has less likely, by the factor R");
  flags.option("--presence-penalty", &presence_penalty, "X",
               "Lower the score of tokens that the answer already has by X");
  flags.option("--frequency-penalty", &frequency_penalty, "X",
               "Lower the score of a token by X for every time that the answer already has it");
  flags.option("--logit-bias", &logit_bias, "ID=BIAS",
               "Raise or lower the score of one token; may be repeated");
  flags.option("--seed", &seed, "N",
               "Seed that makes a random answer repeatable; the statistics show it");
  flags.option("--stop", &stop, "TEXT", "End the answer before this text; may be repeated");
  flags.flag("--ignore-eos", &ignore_eos, "Do not stop at the model's end tokens");
}

Status SamplingFlags::check() const {
  if (greedy && temperature.value_or(0) > 0)
    return error("--greedy and --temperature ", *temperature, " contradict each other");
  SLIP_TRY_STATUS(check_range("--temperature", temperature, 0, 100));
  SLIP_TRY_STATUS(check_range("--top-p", top_p, 1e-6, 1));
  SLIP_TRY_STATUS(check_range("--min-p", min_p, 0, 1));
  SLIP_TRY_STATUS(check_range("--repetition-penalty", repetition_penalty, 0.01, 100));
  SLIP_TRY_STATUS(check_range("--presence-penalty", presence_penalty, -100, 100));
  SLIP_TRY_STATUS(check_range("--frequency-penalty", frequency_penalty, -100, 100));
  SLIP_TRY_STATUS(check_least("--top-k", top_k, 0));
  SLIP_TRY_STATUS(check_least("--max-tokens", max_tokens, 0));
  if (seed && *seed < 0) return error("--seed must not be negative: ", *seed);
  for (const std::string& text : stop)
    if (text.empty()) return error("--stop must not be empty");
  for (const std::string& text : logit_bias) {
    SLIP_TRY([[maybe_unused]] const auto bias, parse_bias(text));
  }
  return {};
}

Status SamplingFlags::check_ids(int64_t vocabulary) const {
  for (const std::string& text : logit_bias) {
    SLIP_TRY(const auto bias, parse_bias(text));
    if (bias.first >= vocabulary)
      return error("--logit-bias ", text, ": the model has ", vocabulary, " tokens, 0 to ",
                   vocabulary - 1);
  }
  return {};
}

GenerateRequest SamplingFlags::request(const GenerationDefaults& defaults) const {
  GenerateRequest request;
  SamplingOptions& sampling = request.sampling;
  sampling = defaults.sampling;
  const auto set = [](auto& into, const auto& flag) {
    if (flag) into = std::remove_reference_t<decltype(into)>(*flag);
  };
  set(sampling.temperature, temperature);
  set(sampling.top_k, top_k);
  set(sampling.top_p, top_p);
  set(sampling.min_p, min_p);
  set(sampling.repetition_penalty, repetition_penalty);
  set(sampling.presence_penalty, presence_penalty);
  set(sampling.frequency_penalty, frequency_penalty);
  if (greedy) sampling.temperature = 0;
  for (const std::string& text : logit_bias)
    sampling.logit_bias.push_back(parse_bias(text).value());
  sampling.seed = seed ? uint64_t(*seed) : random_seed();
  set(request.max_tokens, max_tokens);
  if (!ignore_eos) request.stop_ids = defaults.stop_ids;
  request.stop_strings = stop;
  return request;
}

}  // namespace slip
