// inspect: what a checkpoint holds and needs.
#include <cstdio>

#include "slipstream/common/backend.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/inspect/report.h"
#include "slipstream/verb.h"

namespace slip {
namespace {

class Inspect : public Verb {
 public:
  Inspect() : flags_("inspect", "Show what a checkpoint holds and what it takes to run it") {
    flags_.positional("MODEL", &model_, "A folder, a repository id or a shape; default: minnow");
    flags_.option("-m,--model", &model_flag_, "MODEL", "The same as MODEL");
    flags_.option("--kv-cache", &kv_cache_, "RECIPE", kKvCacheHelp);
    flags_.flag("--json", &json_, "Print a JSON object");
    flags_.footer(
        "Reads the headers of the files only, so it is quick for any size. A shape is a published "
        "model's size without its files: inspect prints what its files and its context would take. "
        "Shapes, " +
        std::string(ModelSource::kShapeFormats) + ":\n  " +
        join(ModelSource::shape_names(), "\n  "));
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    if (!model_.empty() && !model_flag_.empty())
      return error("the model is given twice: \"", model_, "\" and --model \"", model_flag_, "\"");
    SLIP_TRY(kv_, of_flag("--kv-cache", kv_choice(kv_cache_)));
    return {};
  }

  Result<int> run() override {
    InspectRequest request;
    request.name = model_.empty() ? model_flag_ : model_;
    if (request.name.empty()) request.name = "minnow";
    std::error_code ignored;
    const bool shape =
        ModelSource::is_shape(request.name) && !std::filesystem::exists(request.name, ignored);
    if (!shape) {
      SLIP_TRY(request.folder, locate_model_beside_shapes(request.name));
    }
    SLIP_TRY(const Backend backend, make_backend({}));
    request.kv = kv_.value_or(backend.ops->usual_kv(1));
    SLIP_TRY(InspectReport report, inspect_model(request, *backend.ops));
    report.backend = backend.description;
    if (json_) {
      std::printf("%s\n", dump_json(report_json(report)).c_str());
    } else {
      std::fputs(report_text(report).c_str(), stdout);
    }
    return 0;
  }

 private:
  Flags flags_;
  std::string model_, model_flag_;
  std::string kv_cache_ = "auto";
  std::optional<KvRecipe> kv_;  // what settle() makes of it
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_inspect_verb() { return std::make_unique<Inspect>(); }

}  // namespace slip
