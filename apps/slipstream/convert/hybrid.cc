// convert hybrid: an INT4 checkpoint with the matrices it kept in 16 bits replaced by FP8.
#include <cstdio>

#include "base/json.h"
#include "convert/remote_source.h"
#include "engine/memory_plan.h"
#include "slipstream/common/environment.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/convert/convert.h"

namespace slip {
namespace {

// A table row per class: how many were replaced, and why the others were not.
std::string report_text(const HybridPlan& plan) {
  const std::map<TensorClass, int64_t> replaced = plan.replaced();
  std::string text;
  for (const TensorClass one : all_tensor_classes()) {
    const auto count = replaced.find(one);
    if (count != replaced.end())
      text += cat("  ", name_of(one), ": ", count->second,
                  count->second == 1 ? " matrix becomes FP8\n" : " matrices become FP8\n");
    const auto left = plan.left.find(one);
    if (left == plan.left.end()) continue;
    for (const auto& [reason, tensors] : left->second)
      text += cat("  ", name_of(one), ": ", tensors, " stay: ", name_of(reason), "\n");
  }
  return text + cat("  ", plan.unused_fp8, " tensors of the FP8 checkpoint are not needed\n",
                    "  16-bit matrices of ", describe_bytes(plan.bytes_before()), " become ",
                    describe_bytes(plan.bytes_after()), "\n");
}

class ConvertHybrid : public Verb {
 public:
  ConvertHybrid() : flags_("convert hybrid", "Make an INT4+FP8 checkpoint from one of each") {
    flags_.option("--int4", &int4_, "DIR", "The INT4 checkpoint (AutoRound, GPTQ)");
    flags_.option(
        "--fp8", &fp8_, "DIR|REPO",
        "The FP8 checkpoint of the same model: a folder, or org/name on the hub, from which "
        "only the needed bytes are fetched");
    flags_.option("--out", &out_, "DIR", "Folder to write the result to");
    flags_.option("--replace", &replace_, "CLASSES",
                  "Classes of tensors that become FP8 where the INT4 files have 16 bits; default: "
                  "shared_experts");
    flags_.flag(
        "--full", &full_,
        "Also rewrite the files that hold replaced matrices, so that no tensor is stored twice");
    flags_.choice(
        "--link", &link_, {"auto", "hard", "reference", "copy"},
        "How unchanged files get into the folder; auto: hard links where possible, else copies");
    flags_.option("--endpoint", &endpoint_, "URL",
                  "Hub to fetch from; default: HF_ENDPOINT, or https://huggingface.co");
    flags_.flag("--dry-run", &dry_run_, "Say what would be done, and do nothing");
    flags_.flag("-q,--quiet", &quiet_, "Print only the folder");
    flags_.flag("--json", &json_, "Print a JSON object instead of the folder");
    flags_.footer(
        "By default the INT4 files are linked, not rewritten: one more file has the FP8 matrices, "
        "and a new index points to them. The folder appears when it is complete; an interrupted "
        "run is simply started again.\n\nClasses: " +
        tensor_class_words() +
        "\n\nExample:\n"
        "  slipstream convert hybrid --int4 ./qwen-int4 \\\n"
        "    --fp8 Qwen/Qwen3.5-122B-A10B-FP8 --out ./qwen-hybrid");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    if (int4_.empty() || fp8_.empty() || out_.empty())
      return error("--int4, --fp8 and --out are needed");
    if (!replace_.empty()) {
      SLIP_TRY(classes_, parse_tensor_classes(replace_));
    }
    return {};
  }

  Result<int> run() override {
    HubSettings hub = hub_settings();
    if (!endpoint_.empty()) hub.endpoint = endpoint_;
    ignore_broken_pipes();
    ConvertDisplay display(quiet_);
    Result<int> status = convert(hub, display);
    if (!status.ok()) return convert_failure(std::move(status).failure());
    return status;
  }

 private:
  Result<int> convert(const HubSettings& hub, ConvertDisplay& display) {
    SLIP_TRY(const LinkWay link, parse_link_way(link_));
    SLIP_TRY(const std::filesystem::path int4_folder, locate_model(int4_));
    SLIP_TRY(const Checkpoint int4, Checkpoint::open(int4_folder));
    SLIP_TRY(const std::unique_ptr<TensorSource> fp8, open_fp8(hub));
    SLIP_TRY(const HybridPlan plan, plan_hybrid(int4, *fp8, classes_));
    for (const std::string& note : int4.notes()) display.say(cat(int4_, ": ", note));
    display.say(report_text(plan));
    if (plan.replacements.empty())
      return error("no 16-bit matrix of ", chosen_words(), " is FP8 in ", fp8_,
                   "; nothing was written");
    if (dry_run_) return finish(plan, {});
    display.stage("hybrid");
    SLIP_TRY(const HybridResult result, make_hybrid({.int4 = int4,
                                                     .fp8 = *fp8,
                                                     .plan = plan,
                                                     .classes = classes_,
                                                     .out = out_,
                                                     .full = full_,
                                                     .link = link},
                                                    display.callback()));
    if (result.was_there) {
      display.say("nothing needs doing: the folder holds this hybrid already");
    } else {
      display.say(cat("wrote ", describe_bytes(result.written),
                      result.copied > 0 ? cat(", copied ", describe_bytes(result.copied),
                                              " that could not be linked")
                                        : "",
                      " in ", describe_seconds(display.seconds())));
    }
    if (!json_) std::printf("%s\n", out_.c_str());
    return finish(plan, result);
  }

  int finish(const HybridPlan& plan, const HybridResult& result) const {
    const JsonObject object{{"folder", out_},
                            {"replaced", plan.replacements.size()},
                            {"bytes_before", plan.bytes_before()},
                            {"bytes_after", plan.bytes_after()},
                            {"was_there", result.was_there},
                            {"written_bytes", result.written},
                            {"copied_bytes", result.copied},
                            {"dry_run", dry_run_}};
    if (json_) std::printf("%s\n", dump_json(object).c_str());
    return 0;
  }

  std::string chosen_words() const {
    std::vector<std::string> words;
    for (const TensorClass one : classes_) words.emplace_back(name_of(one));
    return join(words, ", ");
  }

  // A folder wins, then the cache, then the hub.
  Result<std::unique_ptr<TensorSource>> open_fp8(const HubSettings& hub) const {
    const Result<std::filesystem::path> folder = locate_model(fp8_);
    if (folder.ok()) {
      SLIP_TRY(std::unique_ptr<FolderSource> local, FolderSource::open(folder.value()));
      return std::unique_ptr<TensorSource>(std::move(local));
    }
    const std::optional<RepoId> repo = parse_repo_id(fp8_);
    if (!repo || is_offline()) return folder.failure();
    SLIP_TRY(std::unique_ptr<RemoteSource> remote,
             RemoteSource::open(*repo, hub, InterruptScope::flag()));
    return std::unique_ptr<TensorSource>(std::move(remote));
  }

  Flags flags_;
  std::string int4_, fp8_, out_, link_ = "auto", endpoint_;
  std::vector<std::string> replace_;
  std::set<TensorClass> classes_{TensorClass::shared_experts};
  bool full_ = false, dry_run_ = false, quiet_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_convert_hybrid_verb() { return std::make_unique<ConvertHybrid>(); }

}  // namespace slip
