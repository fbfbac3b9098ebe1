// pull: a model from a hub into the Hugging Face cache.
#include <cstdio>

#include "slipstream/common/environment.h"
#include "slipstream/common/terminal.h"
#include "slipstream/pull/progress.h"
#include "slipstream/verb.h"

namespace slip {
namespace {

// Stops when the plan is known.
class PlanOnly : public PullDisplay {
 public:
  using PullDisplay::PullDisplay;
  bool planned(const PullPlan& plan) override {
    PullDisplay::planned(plan);
    return plan.bytes_to_fetch == 0;
  }
};

class Pull : public Verb {
 public:
  Pull() : flags_("pull", "Download a model from Hugging Face, or resume a download") {
    flags_.positional("REPO", &repository_, "Repository, as org/name or org/name@revision");
    flags_.option(
        "--include", &files_.include, "GLOB",
        "Fetch the files that match instead of those that a model needs; may be repeated");
    flags_.option("--exclude", &files_.exclude, "GLOB",
                  "Do not fetch the files that match; may be repeated");
    flags_.option("--endpoint", &endpoint_, "URL",
                  "Hub to fetch from; default: HF_ENDPOINT, or https://huggingface.co");
    flags_.option("--cache-dir", &cache_, "DIR",
                  "Folder of the models--... folders; default: the Hugging Face cache");
    flags_.option("--connections", &connections_, "N", "Number of connections at once");
    flags_.flag("--verify", &verify_, "Also check the checksums of files that are there already");
    flags_.flag("--dry-run", &dry_run_, "Say what would be fetched, and fetch nothing");
    flags_.flag("-q,--quiet", &quiet_, "Print only the folder");
    flags_.footer(
        "Prints the folder with the model on standard output. May be interrupted at any time: what "
        "has come is kept, and the same command goes on with it.\n\n"
        "Environment: HF_TOKEN (or hf auth login), HF_ENDPOINT, HF_HOME, HF_HUB_CACHE, "
        "https_proxy, http_proxy, no_proxy, SSL_CERT_FILE.\n\n"
        "Examples:\n"
        "  slipstream pull Qwen/Qwen3.5-35B-A3B\n"
        "  slipstream pull Qwen/Qwen3.5-35B-A3B@refs/pr/1 --dry-run\n"
        "  slipstream pull org/name --include '*.json'     the small files alone");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    if (repository_.empty()) return error("name a repository, as org/name[@revision]");
    repo_ = parse_repo_id(repository_);
    if (!repo_) return error("expected org/name[@revision], found \"", repository_, "\"");
    if (connections_ < 1 || connections_ > 64)
      return error("--connections is 1 to 64, not ", connections_);
    return {};
  }

  Result<int> run() override {
    if (is_offline())
      return error("HF_HUB_OFFLINE is set, so nothing is downloaded; unset it to pull");
    PullRequest request{.repo = *repo_, .hub_folder = cache_, .hub = hub_settings()};
    if (cache_.empty()) {
      SLIP_TRY(request.hub_folder, hub_folder());
    }
    if (!endpoint_.empty()) request.hub.endpoint = endpoint_;
    request.files = files_;
    request.verify_present = verify_;
    request.download.connections = int(connections_);
    return pull_and_show(request);
  }

 private:
  Result<int> pull_and_show(const PullRequest& request) {
    const PullDisplay::Style style{.line = progress_style(quiet_)};
    ignore_broken_pipes();
    const InterruptScope interrupts(InterruptScope::Again::ends_program);
    const ModelFlags usual;
    const auto display = dry_run_ ? std::make_unique<PlanOnly>(repository_, usual, style)
                                  : std::make_unique<PullDisplay>(repository_, usual, style);
    display->looking_at(request.hub.endpoint);
    Result<PullResult> result = pull(request, *display, InterruptScope::flag());
    display->finished(result.ok() ? result.value() : PullResult{PullResult::End::declined, {}, {}});
    if (!result.ok()) return std::move(result).failure();
    if (result.value().end == PullResult::End::interrupted) return kInterruptedStatus;
    if (result.value().end == PullResult::End::complete)
      std::printf("%s\n", result.value().folder.c_str());
    return 0;
  }

  Flags flags_;
  std::string repository_, endpoint_, cache_;
  std::optional<RepoId> repo_;
  FileChoice files_;
  int64_t connections_ = 8;
  bool verify_ = false, dry_run_ = false, quiet_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_pull_verb() { return std::make_unique<Pull>(); }

}  // namespace slip
