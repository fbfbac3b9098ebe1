#include "slipstream/pull/model.h"

#include <cstdio>
#include <iostream>

#include "base/repo_id.h"
#include "checkpoint/model_location.h"
#include "slipstream/common/environment.h"
#include "slipstream/common/terminal.h"
#include "slipstream/pull/progress.h"

namespace slip {
namespace {

// Shows what would be fetched and lets a person decide.
class AskingDisplay : public PullDisplay {
 public:
  using PullDisplay::PullDisplay;

  bool planned(const PullPlan& plan) override {
    PullDisplay::planned(plan);
    if (plan.bytes_to_fetch == 0) return true;
    std::fputs("Download it now? [Y/n] ", stderr);
    std::string answer;
    if (!std::getline(std::cin, answer)) return false;
    return answer.empty() || answer[0] == 'y' || answer[0] == 'Y';
  }
};

}  // namespace

Status fetch_model(ModelFlags& flags) {
  const bool asked_for = !flags.repository.empty();
  if (asked_for) flags.model = flags.repository;
  const std::optional<RepoId> repo = parse_repo_id(flags.model);
  if (!repo || is_offline()) return {};
  if (find_model(flags.model, {.hf_cache_dirs = hugging_face_caches()}).ok()) return {};

  PullRequest request{.repo = *repo, .hub = hub_settings()};
  SLIP_TRY(request.hub_folder, hub_folder());
  const Terminal terminal = Terminal::detect(user_environment());
  const PullDisplay::Style style{.line = progress_style(), .only_what_runs = !asked_for};
  std::fprintf(stderr, "%s is not on this machine; looking for it at %s\n", flags.model.c_str(),
               request.hub.endpoint.c_str());
  ignore_broken_pipes();
  const InterruptScope interrupts(InterruptScope::Again::ends_program);
  const bool ask = !asked_for && terminal.input && terminal.error;
  const auto display = ask ? std::make_unique<AskingDisplay>(flags.model, flags, style)
                           : std::make_unique<PullDisplay>(flags.model, flags, style);
  SLIP_TRY(const PullResult result, pull(request, *display, InterruptScope::flag()));
  display->finished(result);
  if (result.end == PullResult::End::complete) return {};
  return error(flags.model, " is not on this machine");
}

}  // namespace slip
