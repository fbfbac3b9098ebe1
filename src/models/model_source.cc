#include "models/model_source.h"

#include "checkpoint/config_reader.h"
#include "models/gemma4/shapes.h"
#include "models/gemma4/source.h"
#include "models/gemma4_assistant/config.h"
#include "models/gemma4_assistant/source.h"
#include "models/qwen3_5/shapes.h"
#include "models/qwen3_5/source.h"

namespace slip {
namespace {

// Of the text model, which may be the root of config.json or its "text_config". Files that say
// nothing are left to a family's own reader.
std::string text_model_type(const JsonObject& config) {
  const Json* text = config.if_contains("text_config");
  const std::string_view inner = text_or_empty(member_of(text, "model_type"));
  return std::string(inner.empty() ? text_or_empty(config.if_contains("model_type")) : inner);
}

struct NamedShape {
  std::string name;
  Release release;
};

// "qwen3.5-35b-a3b-fp8"
NamedShape read_shape(const std::string& shape) {
  constexpr std::pair<std::string_view, Release> kSuffixes[] = {{"-fp8", Release::fp8},
                                                                {"-bf16", Release::bf16}};
  for (const auto& [suffix, release] : kSuffixes)
    if (shape.ends_with(suffix)) return {shape.substr(0, shape.size() - suffix.size()), release};
  return {shape, Release::int4};
}

}  // namespace

std::vector<std::string> ModelSource::notes() const {
  std::vector<std::string> notes = family_->notes();
  notes.insert(notes.end(), warnings().begin(), warnings().end());
  return notes;
}

Status ModelSource::check_family(const JsonObject& config, const std::string& source) {
  const std::string type = text_model_type(config);
  if (type.empty() || gemma4::handles_model_type(type) || qwen3_5::handles_model_type(type) ||
      gemma4_assistant::is_drafter(config))
    return {};
  return error(source, ": model_type: found \"", type,
               "\"; there are Qwen3.5 and 3.6 (qwen3_5, qwen3_5_moe) and Gemma 4 (gemma4, ",
               "gemma4_unified)");
}

Result<ModelSource> ModelSource::open(const std::filesystem::path& folder,
                                      const std::filesystem::path& drafter) {
  SLIP_TRY(const JsonObject config, read_config_json(folder));
  if (gemma4_assistant::is_drafter(config))
    return error(folder.string(), ": this is a drafter, which runs beside its model: open that ",
                 "one, with this folder as its drafter")
        .about("drafter");
  SLIP_TRY_STATUS(check_family(config, (folder / "config.json").string()));
  if (gemma4::handles_model_type(text_model_type(config))) {
    SLIP_TRY(std::unique_ptr<gemma4::Source> model, gemma4::Source::open(config, folder));
    SLIP_TRY(std::unique_ptr<FamilySource> family,
             gemma4_assistant::with_drafter(std::move(model), folder, drafter));
    return ModelSource(std::move(family));
  }
  SLIP_TRY(std::unique_ptr<FamilySource> family, qwen3_5::open_source(config, folder));
  if (!drafter.empty())
    return error(folder.string(), " drafts with a layer of its own; only models whose drafter has ",
                 "files of its own can be given one")
        .about("drafter");
  return ModelSource(std::move(family));
}

Result<ModelSource> ModelSource::synthetic(const std::string& shape) {
  const auto [name, release] = read_shape(shape);
  if (const auto config = qwen3_5::shape_by_name(name))
    return ModelSource(qwen3_5::synthetic_source(*config, release));
  if (const auto config = gemma4::shape_by_name(name))
    return ModelSource(gemma4_assistant::synthetic_source(name, *config, release));
  return error("no shape is called \"", shape, "\"; there are ", join(shape_names(), ", "), "; ",
               kShapeFormats);
}

std::vector<std::string> ModelSource::shape_names() {
  std::vector<std::string> names = qwen3_5::shape_names();
  for (std::string& name : gemma4::shape_names()) names.push_back(std::move(name));
  return names;
}

bool ModelSource::is_shape(const std::string& shape) {
  const std::string name = read_shape(shape).name;
  return qwen3_5::shape_by_name(name) || gemma4::shape_by_name(name);
}

}  // namespace slip
