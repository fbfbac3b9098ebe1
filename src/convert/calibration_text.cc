#include "convert/calibration_text.h"

#include <algorithm>
#include <random>

#include "base/files.h"
#include "engine/generation_config.h"
#include "engine/session.h"
#include "text/tokenizer.h"

namespace slip {

Result<CalibrationText> samples_of_file(const std::filesystem::path& model,
                                        const std::filesystem::path& file, const SampleSize& size) {
  SLIP_TRY(const Tokenizer tokenizer, Tokenizer::load(model));
  SLIP_TRY(const std::string text, read_text_file(file, uint64_t{4} << 30));
  const std::vector<int32_t> ids = tokenizer.encode(text);
  const int64_t pieces = int64_t(ids.size()) / size.length;
  if (pieces == 0)
    return error(file.string(), ": has ", ids.size(), " tokens, expected at least ", size.length,
                 ", one sample");
  CalibrationText result{.samples = {}, .origin = file.filename().string()};
  const int64_t samples = std::min(pieces, size.samples);
  for (int64_t i = 0; i < samples; ++i) {
    const auto begin = ids.begin() + i * pieces / samples * size.length;
    result.samples.emplace_back(begin, begin + size.length);
  }
  return result;
}

Result<CalibrationText> samples_of_model(const std::filesystem::path& model, const SampleSize& size,
                                         Ops& ops, ThreadPool& pool,
                                         const ConvertProgress& progress) {
  SLIP_TRY(const ModelSource source, ModelSource::open(model));
  SLIP_TRY(const Tokenizer tokenizer, Tokenizer::load(model));
  SLIP_TRY(const GenerationDefaults defaults, read_generation_defaults(model));
  EngineOptions options;
  options.memory.context = size.length;
  SLIP_TRY(const std::unique_ptr<Engine> engine, Engine::load(source, options, ops, pool, {}));
  const int64_t vocabulary = engine->model().info().vocabulary;
  const int64_t usable = std::min<int64_t>(vocabulary, tokenizer.vocab_size());
  CalibrationText result{.samples = {}, .origin = "self"};
  std::mt19937 chance(1);
  Session session(*engine);
  for (int64_t i = 0; i < size.samples; ++i) {
    const bool begins_anew = i % 2 == 0 && !defaults.stop_ids.empty();
    std::vector<int32_t> ids = {begins_anew ? defaults.stop_ids.front()
                                            : int32_t(chance() % uint64_t(usable))};
    Sampler sampler({.temperature = 1, .seed = uint64_t(i)}, vocabulary, usable);
    session.clear();
    while (int64_t(ids.size()) < size.length) {
      SLIP_TRY_STATUS(session.feed(std::span(ids).last(1)));
      ids.push_back(sampler.next(session.choice()));
    }
    result.samples.push_back(std::move(ids));
    if (!progress(uint64_t((i + 1) * size.length), uint64_t(size.samples * size.length)))
      return error(kInterrupted);
  }
  return result;
}

}  // namespace slip
