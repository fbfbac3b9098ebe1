#include "convert_report.h"

#include <cstdio>

#include "base/files.h"
#include "eval.h"
#include "eval_comparison.h"
#include "eval_drafts.h"
#include "eval_windows.h"
#include "text/tokenizer.h"

namespace slip {
namespace {

constexpr int64_t kFewestTokens = 64;

Result<std::vector<std::span<const int32_t>>> windows_in(
    const std::vector<std::vector<int32_t>>& ids, const QualityRequest& request) {
  auto windows = windows_of(ids, request.length);
  if (ids.front().size() < size_t(kFewestTokens))
    return error(request.text, ": has ", ids.front().size(), " tokens, too few to judge by");
  windows.resize(std::min(windows.size(), size_t(request.windows)));
  return windows;
}

Result<std::string> describe_distance(Engine& source, Engine& made,
                                      const std::vector<std::span<const int32_t>>& windows) {
  Comparison comparison(source, made);
  for (const std::span<const int32_t> window : windows)
    SLIP_TRY_STATUS(comparison.add_window(window));
  char line[160];
  std::snprintf(line, sizeof(line),
                "perplexity %.4f, source %.4f: %+.2f %%; KL %.5f nats; same first choice %.1f %%",
                comparison.candidate_perplexity(), comparison.reference_perplexity(),
                100 * comparison.perplexity_change(), comparison.mean_kl(),
                100 * comparison.agreement());
  return std::string(line);
}

// The share of first drafts that are what the model itself would choose; nothing without MTP.
Result<std::optional<double>> draft_share(Engine& engine,
                                          const std::vector<std::span<const int32_t>>& windows) {
  if (!engine.model().drafter()) return std::optional<double>();
  Session session(engine);
  std::vector<DraftAgreement> places(1);
  for (const std::span<const int32_t> window : windows)
    SLIP_TRY_STATUS(judge_drafts(session, window, places));
  return std::optional(places.front().share());
}

std::string percent(std::optional<double> share) {
  if (!share) return "none";
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %%", 100 * *share);
  return text;
}

}  // namespace

Result<std::string> quality_report(const QualityRequest& request, const Backend& backend) {
  SLIP_TRY(const Tokenizer tokenizer, Tokenizer::load(request.source));
  SLIP_TRY(const std::string text, read_text_file(request.text));
  const std::vector<std::vector<int32_t>> ids = {tokenizer.encode(text)};
  SLIP_TRY(const auto windows, windows_in(ids, request));
  const auto load = [&](const std::filesystem::path& folder) {
    ModelFlags flags;
    flags.model = folder.string();
    return load_engine(backend, flags,
                       {.context = request.length, .with_drafter = true, .drafter = nullptr});
  };
  SLIP_TRY(const std::unique_ptr<Engine> source, load(request.source));
  SLIP_TRY(const std::unique_ptr<Engine> made, load(request.made));
  SLIP_TRY(const std::string distance, describe_distance(*source, *made, windows));
  SLIP_TRY(const std::optional<double> drafts_before, draft_share(*source, windows));
  SLIP_TRY(const std::optional<double> drafts_after, draft_share(*made, windows));
  return cat(distance, "\nfirst drafts that are the model's own choice: ", percent(drafts_after),
             ", source ", percent(drafts_before));
}

}  // namespace slip
