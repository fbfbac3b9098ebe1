#include "slipstream/convert/report.h"

#include <cstdio>

#include "base/files.h"
#include "slipstream/eval/comparison.h"
#include "slipstream/eval/drafts.h"
#include "slipstream/eval/eval.h"
#include "slipstream/eval/windows.h"
#include "text/tokenizer.h"

namespace slip {
namespace {

constexpr int64_t kFewestTokens = 64;

// Calls `look` for each window, and counts their tokens.
class Windows {
 public:
  // The text is read `passes` times.
  Windows(const QualityText& text, int64_t passes, const ConvertProgress& progress)
      : text_(text), total_(uint64_t(passes * text.tokens())), progress_(progress) {}

  Status for_each(FunctionRef<Status(std::span<const int32_t>)> look) {
    for (const std::vector<int32_t>& window : text_.windows) {
      SLIP_TRY_STATUS(look(window));
      done_ += window.size();
      if (!progress_(done_, total_)) return error(kInterrupted);
    }
    return {};
  }

 private:
  const QualityText& text_;
  uint64_t done_ = 0, total_;
  const ConvertProgress& progress_;
};

Result<std::optional<double>> draft_share(Engine& engine, Windows& windows) {
  if (!engine.model().drafter()) return std::optional<double>();
  Session session(engine);
  std::vector<DraftAgreement> places(1);
  SLIP_TRY_STATUS(windows.for_each(
      [&](std::span<const int32_t> window) { return judge_drafts(session, window, places); }));
  return std::optional(places.front().share());
}

std::string percent(std::optional<double> share) {
  return share ? fixed(100 * *share, 1) + " %" : "none";
}

}  // namespace

Result<QualityText> QualityText::read(const std::filesystem::path& file,
                                      const std::filesystem::path& model) {
  SLIP_TRY(const Tokenizer tokenizer, Tokenizer::load(model));
  SLIP_TRY(const std::string text, read_text_file(file));
  const std::vector<std::vector<int32_t>> ids = {tokenizer.encode(text)};
  if (int64_t(ids.front().size()) < kFewestTokens)
    return error(file.string(), ": has ", ids.front().size(), " tokens, too few to judge by; ",
                 kFewestTokens, " are enough");
  QualityText result;
  for (const std::span<const int32_t> window : windows_of(ids, kWindowTokens))
    if (int64_t(result.windows.size()) < kMostWindows)
      result.windows.emplace_back(window.begin(), window.end());
  return result;
}

int64_t QualityText::tokens() const {
  size_t sum = 0;
  for (const std::vector<int32_t>& window : windows) sum += window.size();
  return int64_t(sum);
}

std::string QualityReport::text() const {
  char line[160];
  std::snprintf(line, sizeof(line),
                "perplexity %.4f, source %.4f: %+.2f %%; KL %.5f nats; same first choice %.1f %%",
                perplexity, source_perplexity, 100 * perplexity_change, kl, 100 * agreement);
  return cat(line, "\nfirst drafts that are the model's own choice: ", percent(drafts), ", source ",
             percent(source_drafts));
}

JsonObject QualityReport::json() const {
  const auto or_null = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  return {{"perplexity", perplexity},
          {"source_perplexity", source_perplexity},
          {"perplexity_change_percent", 100 * perplexity_change},
          {"mean_kl", kl},
          {"top1_agreement", agreement},
          {"draft_share", or_null(drafts)},
          {"source_draft_share", or_null(source_drafts)}};
}

Result<QualityReport> measure_quality(const QualityText& text, const std::filesystem::path& source,
                                      const std::filesystem::path& made, const Backend& backend,
                                      const ConvertProgress& progress) {
  const auto load = [&](const std::filesystem::path& folder) {
    ModelFlags flags;
    flags.model = folder.string();
    return load_engine(backend, flags,
                       {.context = QualityText::kWindowTokens, .with_drafter = true});
  };
  SLIP_TRY(const std::unique_ptr<Engine> before, load(source));
  SLIP_TRY(const std::unique_ptr<Engine> after, load(made));
  const int64_t drafters =
      int(before->model().drafter() != nullptr) + int(after->model().drafter() != nullptr);
  Windows windows(text, 1 + drafters, progress);
  Comparison comparison(*before, *after);
  SLIP_TRY_STATUS(windows.for_each(
      [&](std::span<const int32_t> window) { return comparison.add_window(window); }));
  QualityReport report{.perplexity = comparison.candidate_perplexity(),
                       .source_perplexity = comparison.reference_perplexity(),
                       .perplexity_change = comparison.perplexity_change(),
                       .kl = comparison.mean_kl(),
                       .agreement = comparison.agreement()};
  SLIP_TRY(report.drafts, draft_share(*after, windows));
  SLIP_TRY(report.source_drafts, draft_share(*before, windows));
  return report;
}

}  // namespace slip
