// convert check: whether a checkpoint would load, told without loading it.
#include <cstdio>

#include "base/json.h"
#include "convert/check_folder.h"
#include "engine/memory_plan.h"
#include "slipstream/common/backend.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/numbers.h"
#include "slipstream/convert/convert.h"

namespace slip {
namespace {

class ConvertCheck : public Verb {
 public:
  ConvertCheck() : flags_("convert check", "Check that a checkpoint is complete and right") {
    flags_.positional("MODEL", &model_, "A folder or a repository id");
    flags_.flag("--deep", &deep_, "Read every number as well: NaN, infinity, zero points");
    flags_.flag("--json", &json_, "Print a JSON object");
    flags_.footer(
        "Checks what loading would: names, shapes and types, whole files, the index. Exit status "
        "0: it is good; 1: it is not, and the reasons are printed.");
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    if (model_.empty()) return error("MODEL is needed");
    return {};
  }

  Result<int> run() override {
    SLIP_TRY(const std::filesystem::path folder, locate_model(model_));
    SLIP_TRY(const Backend backend, make_backend({}));
    FolderReport report = check_folder(folder, *backend.ops);
    if (deep_) {
      ConvertDisplay display(json_);
      display.stage("reading");
      Status read = check_numbers(folder, *backend.pool, report, display.callback());
      if (!read.ok()) return convert_failure(std::move(read).failure());
    }
    if (json_) {
      print_json(report);
    } else {
      print_text(report);
    }
    return report.good() ? 0 : 1;
  }

 private:
  void print_json(const FolderReport& report) const {
    const JsonObject object{{"good", report.good()},
                            {"problems", JsonArray(report.problems.begin(), report.problems.end())},
                            {"notes", JsonArray(report.notes.begin(), report.notes.end())},
                            {"family", report.family},
                            {"layers", report.layers},
                            {"tensors", report.tensors},
                            {"files", report.files},
                            {"bytes", report.bytes},
                            {"has_mtp", report.has_mtp},
                            {"deep", deep_}};
    std::printf("%s\n", dump_json(object).c_str());
  }

  void print_text(const FolderReport& report) const {
    for (const std::string& problem : report.problems)
      std::printf("problem: %s\n", problem.c_str());
    for (const std::string& note : report.notes) std::printf("note: %s\n", note.c_str());
    const std::string found =
        cat(with_commas(report.tensors), " tensors in ", report.files,
            report.files == 1 ? " file, " : " files, ", describe_bytes(report.bytes));
    if (!report.good()) {
      std::printf("BROKEN: %s: %zu problem%s (%s)\n", model_.c_str(), report.problems.size(),
                  report.problems.size() == 1 ? "" : "s", found.c_str());
      return;
    }
    std::printf("good: %s: %s, %lld layers, %s, %s%s\n", model_.c_str(), report.family.c_str(),
                static_cast<long long>(report.layers),
                report.has_mtp ? "with an MTP layer" : "without an MTP layer", found.c_str(),
                deep_ ? "; every number was read" : "");
  }

  Flags flags_;
  std::string model_;
  bool deep_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_convert_check_verb() { return std::make_unique<ConvertCheck>(); }

}  // namespace slip
