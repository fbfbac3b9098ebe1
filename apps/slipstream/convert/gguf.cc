// convert gguf: a checkpoint as a file for llama.cpp.
#include "convert/gguf.h"

#include <cstdio>

#include "base/files.h"
#include "base/json.h"
#include "engine/memory_plan.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/convert/convert.h"

namespace slip {
namespace {

class ConvertGguf : public Verb {
 public:
  ConvertGguf() : flags_("convert gguf", "Export a checkpoint to GGUF, for llama.cpp") {
    flags_.positional("MODEL", &model_, "A folder or a repository id");
    flags_.option("--out", &out_, "FILE", "The file to write; it must not exist yet");
    flags_.flag("--no-mtp", &no_mtp_, "Leave the MTP layer out");
    flags_.option("--synthetic", &shape_, "SHAPE",
                  "Write random weights of a published shape, those of bench --synthetic, instead "
                  "of a MODEL");
    flags_.flag("-q,--quiet", &quiet_, "Show no progress");
    flags_.flag("--json", &json_, "Print a JSON object");
    flags_.footer(
        "INT4 becomes Q4_0 with the same codes and scales, 16- and 32-bit numbers stay what they "
        "are; both are exact. FP8 is rounded to BF16.");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    if (out_.empty()) return error("--out is needed");
    if (model_.empty() == shape_.empty())
      return error("one of MODEL and --synthetic SHAPE is needed");
    return {};
  }

  Result<int> run() override {
    GgufRequest request{.model = {}, .shape = shape_, .out = {}, .with_mtp = !no_mtp_};
    SLIP_TRY(request.out, place_to_write(out_));
    if (!model_.empty()) {
      SLIP_TRY(request.model, locate_model(model_));
    }
    ConvertDisplay display(quiet_);
    display.stage("writing");
    Result<GgufResult> exported = export_gguf(request, display.callback());
    if (!exported.ok()) return convert_failure(std::move(exported).failure());
    const GgufResult& result = exported.value();
    if (json_) {
      const JsonObject object{{"file", out_},
                              {"tensors", result.tensors},
                              {"bytes", result.bytes},
                              {"rounded_bytes", result.rounded_bytes},
                              {"has_mtp", result.has_mtp}};
      std::printf("%s\n", dump_json(object).c_str());
      return 0;
    }
    std::printf(
        "%s: %lld tensors, %s, %s an MTP layer, %s\n", out_.c_str(),
        static_cast<long long>(result.tensors), describe_bytes(result.bytes).c_str(),
        result.has_mtp ? "with" : "without",
        result.rounded_bytes == 0
            ? "all exactly as in the checkpoint"
            : cat(describe_bytes(result.rounded_bytes), " of it rounded from FP8 to BF16").c_str());
    return 0;
  }

 private:
  Flags flags_;
  std::string model_, out_, shape_;
  bool no_mtp_ = false, quiet_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_convert_gguf_verb() { return std::make_unique<ConvertGguf>(); }

}  // namespace slip
