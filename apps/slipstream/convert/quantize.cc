// convert int4, convert fp8: a 16-bit checkpoint with coarser weights, in the published layouts.
#include "convert/quantize.h"

#include <cmath>
#include <cstdio>

#include "base/json.h"
#include "convert/calibrate.h"
#include "convert/calibration_text.h"
#include "convert/quantize_config.h"
#include "engine/memory_plan.h"
#include "slipstream/common/backend.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/setting_flags.h"
#include "slipstream/convert/convert.h"
#include "slipstream/convert/report.h"

namespace slip {
namespace {

std::string plan_text(const QuantizePlan& plan) {
  std::string text;
  for (const auto& [tensor_class, forms] : plan.counts)
    for (const auto& [form, count] : forms) {
      const std::string verb = form == StoredForm::plain ? "stay" : "become";
      text += cat("  ", name_of(tensor_class), ": ", count,
                  count == 1 ? " matrix " + verb + "s " : " matrices " + verb + " ", name_of(form),
                  "\n");
    }
  return text;
}

// "shared_experts=fp8"
Status apply_choice(const std::string& text, FormChoices& choices) {
  const size_t equals = text.find('=');
  const std::string word = text.substr(0, equals);
  const std::string form = equals == std::string::npos ? "" : text.substr(equals + 1);
  SLIP_TRY(const std::set<TensorClass> classes, parse_tensor_classes({word}));
  for (const TensorClass one : classes) {
    if (form == "int4") {
      choices[one] = StoredForm::int4;
    } else if (form == "fp8") {
      choices[one] = StoredForm::fp8;
    } else if (form == "16") {
      choices.erase(one);
    } else {
      return error("--class takes CLASS=int4, CLASS=fp8 or CLASS=16, not \"", text, "\"");
    }
  }
  return {};
}

class ConvertQuantize : public Verb {
 public:
  explicit ConvertQuantize(StoredForm form)
      : form_(form),
        flags_(form == StoredForm::int4 ? "convert int4" : "convert fp8",
               form == StoredForm::int4
                   ? "Quantize a 16-bit checkpoint to INT4 (AutoRound's layout)"
                   : "Quantize a 16-bit checkpoint to FP8 (Qwen's layout)") {
    flags_.option("-m,--model", &model_, "MODEL",
                  "The 16-bit checkpoint to convert: a folder or a repository id");
    flags_.option("--out", &out_, "DIR", "Folder to write the result to");
    flags_.option(
        "--class", &classes_, "CLASS=FORM",
        "Format of a class of tensors: int4, fp8 or 16 (bits, unchanged); may be repeated");
    if (form == StoredForm::int4) {
      flags_.option("--group-size", &group_, "N",
                    "Number of weights that share a scale: 128, 64 or 32");
      flags_.option("--calibrate", &calibrate_, "FILE|self",
                    "Round so that the matrices' outputs change least on this text, or (self) on "
                    "text that the "
                    "model writes");
      flags_.option("--samples", &samples_.samples, "N",
                    "Number of pieces of text to calibrate with");
      flags_.option("--sample-length", &samples_.length, "N", "Length of each piece in tokens");
      flags_.option("--device", &machine_.device, "auto|cpu|cuda:N",
                    "Processor that reads the text of --calibrate; rounding is done on the CPU");
    }
    flags_.option(
        "--report", &report_, "FILE",
        "Text file to measure the result on: perplexity, distance from the source, drafts");
    flags_.option("--threads", &machine_.threads, "N", "Number of threads; default: one per core");
    flags_.flag("--dry-run", &dry_run_, "Say what would be done, and do nothing");
    flags_.flag("-q,--quiet", &quiet_, "Print only the folder, and what --report measures");
    flags_.flag("--json", &json_, "Print a JSON object instead of the folder");
    flags_.footer(
        "The folder appears when it is complete; an interrupted run is simply started again and "
        "goes on with the files that were finished.\n\nClasses: " +
        tensor_class_words());
  }
  Flags& flags() override { return flags_; }

  Status settle() override {
    if (model_.empty() || out_.empty()) return error("--model and --out are needed");
    if (samples_.samples < 1) return error("--samples must be at least 1, not ", samples_.samples);
    if (samples_.length < 2)
      return error("--sample-length must be at least 2, not ", samples_.length);
    SLIP_TRY_STATUS(machine_.check());
    if (calibrate_.empty()) machine_.device = "cpu";
    if (group_ != 128 && group_ != 64 && group_ != 32)
      return error("--group-size is 128, 64 or 32, not ", group_);
    choices_ = form_ == StoredForm::int4 ? autoround_choices() : fp8_choices();
    for (const std::string& choice : classes_) SLIP_TRY_STATUS(apply_choice(choice, choices_));
    return {};
  }

  Result<int> run() override {
    ConvertDisplay display(quiet_);
    Result<int> status = convert(display);
    if (status.ok()) return status;
    return convert_failure(advise_on_context(std::move(status).failure(),
                                             "--sample-length sets the length of a sample"));
  }

 private:
  Result<QuantizeResult> quantize(const QuantizeJob& job, const Backend& backend,
                                  ConvertDisplay& display) const {
    display.stage(form_ == StoredForm::int4 ? "INT4" : "FP8");
    return quantize_checkpoint(job, *backend.pool, display.callback());
  }

  Result<QuantizeResult> calibrate(QuantizeJob job, const Backend& backend,
                                   ConvertDisplay& display) const {
    const std::filesystem::path& model = job.source.folder();
    const bool self = calibrate_ == "self";
    CalibrationText text;
    if (!self) {
      SLIP_TRY(text, samples_of_file(model, calibrate_, samples_));
    }
    // What the result will say of itself is known before anything takes long.
    job.quantization_config = autoround_config(
        job.plan, {.sweeps = kCalibrationSweeps,
                   .samples = self ? samples_.samples : int64_t(text.samples.size()),
                   .length = samples_.length,
                   .dataset = self ? "self" : text.origin});
    SLIP_TRY(const bool there, is_quantized(job));
    if (there) {
      // A run that was killed at its very end has left its codes.
      SLIP_TRY(OutputFolder left, calibration_folder(out_, "nothing"));
      SLIP_TRY_STATUS(left.discard());
      return QuantizeResult{.was_there = true};
    }
    if (self) {
      display.stage("writing samples", ConvertDisplay::Unit::tokens);
      SLIP_TRY(text,
               samples_of_model(model, samples_, *backend.ops, *backend.pool, display.callback()));
    }
    display.say(
        cat("calibrating with ", text.samples.size(), " samples, ", text.tokens(), " tokens"));
    SLIP_TRY(OutputFolder work,
             calibration_folder(out_, cat(dump_json(job.quantization_config), fingerprint(text))));
    QuantizeJob rounding = job;
    rounding.quantization_config = autoround_config(job.plan, {});
    rounding.out = work.file("rounded");
    display.stage("rounding");
    SLIP_TRY([[maybe_unused]] const QuantizeResult rounded,
             quantize_checkpoint(rounding, *backend.pool, display.callback()));
    SLIP_TRY(const std::unique_ptr<CalibratedCodes> codes,
             CalibratedCodes::make({.source = job.source,
                                    .plan = job.plan,
                                    .rounded = rounding.out,
                                    .work = work.path(),
                                    .text = text},
                                   *backend.ops, *backend.pool, [&](const CalibrateProgress& now) {
                                     display.stage(cat("layer ", now.layer + 1, " of ", now.layers),
                                                   ConvertDisplay::Unit::tokens);
                                     return display.progressed(uint64_t(now.tokens_done),
                                                               uint64_t(now.tokens));
                                   }));
    for (const LayerErrors& layer : codes->errors()) {
      const double share = layer.before > 0 ? std::sqrt(layer.after / layer.before) : 1;
      display.say(cat("  ", layer.layer, ": outputs are off by ", std::llround(100 * share),
                      " % of what rounding to nearest makes them"));
    }
    job.codes = codes.get();
    SLIP_TRY(const QuantizeResult result, quantize(job, backend, display));
    SLIP_TRY_STATUS(work.discard());
    return result;
  }

  Result<int> convert(ConvertDisplay& display) {
    const bool int4 = form_ == StoredForm::int4;
    const QuantizeOptions options{.choices = choices_, .group = int(group_), .mtp_apart = int4};
    SLIP_TRY(const std::filesystem::path folder, locate_model(model_));
    SLIP_TRY(const Checkpoint source, Checkpoint::open(folder));
    SLIP_TRY(const QuantizePlan plan, plan_quantization(source, options));
    for (const std::string& note : source.notes()) display.say(cat(model_, ": ", note));
    display.say(plan_text(plan));
    std::optional<QualityText> report_text;
    if (!report_.empty()) {
      SLIP_TRY(report_text, QualityText::read(report_, folder));
    }
    if (dry_run_) return finish(plan, {}, {});
    SLIP_TRY(const Backend backend, make_backend(machine_));
    const QuantizeJob job{
        .source = source,
        .plan = plan,
        .quantization_config = int4 ? autoround_config(plan, {}) : fp8_config(plan),
        .hybrid_note = hybrid_note(plan),
        .out = out_};
    SLIP_TRY(const QuantizeResult result, calibrate_.empty() ? quantize(job, backend, display)
                                                             : calibrate(job, backend, display));
    if (result.was_there) {
      display.say("nothing needs doing: the folder holds this checkpoint already");
    } else {
      const double seconds = display.seconds();
      const bool rounded = calibrate_.empty();
      display.say(
          cat("read ", describe_bytes(plan.source_bytes), ", wrote ",
              describe_bytes(result.written), " in ", describe_seconds(seconds),
              rounded ? cat(" (", std::llround(double(plan.source_bytes) / 1e6 / seconds), " MB/s)")
                      : ""));
    }
    JsonObject report;
    if (report_text) {
      display.stage("measuring", ConvertDisplay::Unit::tokens);
      SLIP_TRY(const QualityReport found,
               measure_quality(*report_text, folder, out_, backend, display.callback()));
      display.answer(found.text());
      report = found.json();
    }
    if (!json_) std::printf("%s\n", out_.c_str());
    return finish(plan, result, std::move(report));
  }

  // `report`: what --report measured; empty without it.
  int finish(const QuantizePlan& plan, const QuantizeResult& result, JsonObject report) const {
    JsonObject object{{"folder", out_},
                      {"source_bytes", plan.source_bytes},
                      {"was_there", result.was_there},
                      {"written_bytes", result.written},
                      {"dry_run", dry_run_}};
    if (!report.empty()) object["report"] = std::move(report);
    if (json_) std::printf("%s\n", dump_json(object).c_str());
    return 0;
  }

  StoredForm form_;
  Flags flags_;
  std::string model_, out_;
  std::vector<std::string> classes_;
  FormChoices choices_;
  int64_t group_ = 128;
  std::string calibrate_, report_;
  SampleSize samples_;
  ModelFlags machine_;  // device and threads alone
  bool dry_run_ = false, quiet_ = false, json_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_convert_int4_verb() {
  return std::make_unique<ConvertQuantize>(StoredForm::int4);
}
std::unique_ptr<Verb> make_convert_fp8_verb() {
  return std::make_unique<ConvertQuantize>(StoredForm::fp8);
}

}  // namespace slip
