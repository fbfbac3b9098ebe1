// convert mtp: an MTP layer for a checkpoint that lacks it, or whose index does.
#include "convert/mtp.h"

#include <cstdio>

#include "base/json.h"
#include "engine/memory_plan.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/convert/convert.h"

namespace slip {
namespace {

class ConvertMtp : public Verb {
 public:
  ConvertMtp() : flags_("convert mtp", "Register or copy the MTP layer of a checkpoint") {
    flags_.option(
        "--from", &from_, "DIR",
        "Checkpoint of the same model to copy the MTP layer from; not needed where only the "
        "index of --to lacks it");
    flags_.option("--to", &to_, "DIR",
                  "Checkpoint that receives the MTP layer; it is changed in place");
    flags_.flag("--dry-run", &dry_run_, "Say what would be done, and do nothing");
    flags_.flag("--json", &json_, "Print a JSON object");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    if (to_.empty()) return error("--to is needed");
    return {};
  }

  Result<int> run() override {
    MtpRequest request{.from = std::nullopt, .to = {}, .dry_run = dry_run_};
    SLIP_TRY(request.to, locate_model(to_));
    if (!from_.empty()) {
      SLIP_TRY(request.from, locate_model(from_));
    }
    SLIP_TRY(const MtpResult result, add_mtp(request));
    if (json_) {
      print_json(result);
    } else {
      print_text(result);
    }
    return 0;
  }

 private:
  void print_json(const MtpResult& result) const {
    const JsonObject object{{"folder", to_},
                            {"done", name_of(result.done)},
                            {"tensors", result.tensors},
                            {"copied_bytes", result.bytes},
                            {"dry_run", dry_run_}};
    std::printf("%s\n", dump_json(object).c_str());
  }

  static std::string name_of(MtpResult::Done done) {
    switch (done) {
      case MtpResult::Done::nothing: return "nothing";
      case MtpResult::Done::registered: return "registered";
      case MtpResult::Done::copied: return "copied";
    }
    unreachable("MtpResult::Done");
  }

  void print_text(const MtpResult& result) const {
    const std::string did = dry_run_ ? "would be" : "were";
    switch (result.done) {
      case MtpResult::Done::nothing:
        std::printf("nothing needs doing: all %lld MTP tensors are there and in the index\n",
                    static_cast<long long>(result.tensors));
        break;
      case MtpResult::Done::registered:
        std::printf("%lld MTP tensors lie in the folder; they %s added to the index\n",
                    static_cast<long long>(result.tensors), did.c_str());
        break;
      case MtpResult::Done::copied:
        std::printf("%lld MTP tensors (%s) %s copied into %s\n",
                    static_cast<long long>(result.tensors), describe_bytes(result.bytes).c_str(),
                    did.c_str(), std::string(kMtpFile).c_str());
        break;
    }
  }

  Flags flags_;
  std::string from_, to_;
  bool dry_run_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_convert_mtp_verb() { return std::make_unique<ConvertMtp>(); }

}  // namespace slip
