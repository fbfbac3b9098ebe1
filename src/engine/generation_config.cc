#include "engine/generation_config.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "checkpoint/config_reader.h"

namespace slip {
namespace {

void add_stops(const std::vector<int64_t>& ids, GenerationDefaults& defaults) {
  for (const int64_t id : ids) defaults.add_stop(int32_t(id));
}

// A setting outside its range would not fail later, it would only give strange text.
void check_range(ConfigReader& reader, const char* key, float value, float min, float max) {
  if (!(value >= min && value <= max))
    reader.fail(key, cat("expected a number from ", min, " to ", max, ", found ", value));
}

}  // namespace

void GenerationDefaults::add_stop(int32_t id) {
  if (std::ranges::find(stop_ids, id) == stop_ids.end()) stop_ids.push_back(id);
}

std::vector<int64_t> GenerationDefaults::message_ends(std::span<const int32_t> ids) const {
  std::vector<int64_t> places;
  for (size_t i = 0; i < ids.size(); ++i)
    if (std::ranges::find(stop_ids, ids[i]) != stop_ids.end()) places.push_back(int64_t(i) + 1);
  return places;
}

Result<GenerationDefaults> read_generation_defaults(const std::filesystem::path& model_folder) {
  GenerationDefaults defaults;
  defaults.sampling.temperature = 0;
  const std::filesystem::path path = model_folder / "generation_config.json";
  // What leads nowhere is a failed download, not the absence of the file; hence not exists().
  std::error_code code;
  if (std::filesystem::symlink_status(path, code).type() != std::filesystem::file_type::not_found) {
    SLIP_TRY(const JsonObject json, read_json_object(path));
    ConfigReader reader(json, path.string());
    SamplingOptions& sampling = defaults.sampling;
    if (reader.bool_or("do_sample", false)) {
      sampling.temperature = float(reader.double_or("temperature", 1.0));
      sampling.top_k = int(reader.int_or("top_k", 0));
      sampling.top_p = float(reader.double_or("top_p", 1.0));
      sampling.min_p = float(reader.double_or("min_p", 0.0));
    }
    sampling.repetition_penalty = float(reader.double_or("repetition_penalty", 1.0));
    sampling.presence_penalty = float(reader.double_or("presence_penalty", 0.0));
    check_range(reader, "temperature", sampling.temperature, 0, 100);
    check_range(reader, "top_p", sampling.top_p, 0, 1);
    check_range(reader, "min_p", sampling.min_p, 0, 1);
    check_range(reader, "repetition_penalty", sampling.repetition_penalty, 0.01f, 100);
    add_stops(reader.int_or_int_list("eos_token_id"), defaults);
    for (const int64_t id : reader.int_or_int_list("suppress_tokens", 0, INT32_MAX))
      sampling.logit_bias.emplace_back(int32_t(id), -INFINITY);
    SLIP_TRY([[maybe_unused]] const bool read, reader.finish(true));
  }
  // Published config.json files list only one of a model's two end tokens: the union is right.
  SLIP_TRY(const JsonObject json, read_config_json(model_folder));
  ConfigReader reader(json, (model_folder / "config.json").string());
  add_stops(reader.int_or_int_list("eos_token_id"), defaults);
  if (ConfigReader* text = reader.child_or_null("text_config"))
    add_stops(text->int_or_int_list("eos_token_id"), defaults);
  return reader.finish(defaults);
}

}  // namespace slip
