// doctor: what this machine is, how fast its memory and disk are, and what stands in the way.
#include <cstdio>

#include "engine/memory_plan.h"
#include "models/model_source.h"
#include "slipstream/common/backend.h"
#include "slipstream/common/environment.h"
#include "slipstream/common/machine.h"
#include "slipstream/common/model_flags.h"
#include "slipstream/common/numbers.h"
#include "slipstream/common/roofs.h"
#include "slipstream/doctor/checks.h"
#include "slipstream/verb.h"

namespace slip {
namespace {

// Measuring, loading and all the rest stay below five seconds together.
constexpr double kRoofSeconds = 0.5, kDiskSeconds = 1.0;

class Doctor : public Verb {
 public:
  Doctor() : flags_("doctor", "Check the machine: processor, memory, disk, models") {
    flags_.option("-m,--model", &model_, "MODEL",
                  "Measure the disk that this model lies on; default: minnow's");
    flags_.flag("--json", &json_, "Print a JSON object");
  }
  Flags& flags() override { return flags_; }

  Result<int> run() override {
    look_at_machine();
    look_at_gpus();
    measure_speed();
    look_at_disk();
    look_at_model();
    look_at_files();
    look_at_folders();
    if (json_) {
      report_["problems"] = JsonArray(problems_.begin(), problems_.end());
      std::printf("%s\n", dump_json(report_).c_str());
    } else if (problems_.empty()) {
      std::puts("\nNo problems found.");
    } else {
      std::puts("\nProblems");
      for (const std::string& problem : problems_) std::printf("  %s\n", problem.c_str());
    }
    return works_ ? 0 : 1;
  }

 private:
  void look_at_machine() {
    const JsonObject machine = describe_machine();
    const Processor processor = describe_processor();
    const MachineMemory memory = describe_memory();
    report_["machine"] = machine;
    JsonArray isas;
    std::vector<std::string> isa_names;
    for (const Isa isa : available_isas()) {
      isas.emplace_back(name_of(isa));
      isa_names.emplace_back(name_of(isa));
    }
    report_["processor"] = JsonObject{{"sockets", processor.sockets},
                                      {"cores", processor.cores},
                                      {"threads", processor.threads},
                                      {"usable_threads", processor.usable_threads},
                                      {"instruction_sets", std::move(isas)}};
    report_["memory"] = JsonObject{{"total_bytes", memory.total},
                                   {"available_bytes", memory.available},
                                   {"page_bytes", memory.page_size},
                                   {"huge_pages", memory.huge_pages}};
    row("processor", std::string(machine.at("cpu").get_string()));
    row("", cat(processor.cores, " cores, ", processor.threads, " threads; slipstream may use ",
                processor.usable_threads));
    row("instructions", cat(join(isa_names, ", "), " (the first is used)"));
    row("memory", cat(describe_bytes(memory.total), ", ", describe_bytes(memory.available),
                      " available, pages of ", memory.page_size / 1024, " KiB, huge pages ",
                      memory.huge_pages));
    row("kernel", std::string(machine.at("kernel").get_string()));
    judge(processor, memory);
  }

  void judge(const Processor& processor, const MachineMemory& memory) {
    if (available_isas().front() == Isa::portable)
      problem("No AVX2, AVX-512 or NEON dotprod was found, so slow portable kernels are used.");
    if (processor.quota && *processor.quota + 0.01 < processor.usable_threads)
      problem(cat("The container may use ", describe_rate(*processor.quota),
                  " processors but sees ", processor.usable_threads, ": give --threads ",
                  std::max(1, int(*processor.quota)), ", or raise the limit."));
    if (memory.limit && *memory.limit < memory.available)
      problem(cat("The container may use ", describe_bytes(*memory.limit), " but ",
                  describe_bytes(memory.available), " look free: give --memory."));
    if (memory.huge_pages == "never")
      problem(
          "Huge pages are off; large models decode faster with them: echo madvise > "
          "/sys/kernel/mm/transparent_hugepage/enabled (as root).");
    if (memory.available < uint64_t{1} << 30)
      problem(cat("Only ", describe_bytes(memory.available),
                  " of memory are available: close other programs."));
  }

  void look_at_gpus() {
    const GpuState gpu = look_at_gpu();
    const bool usable = !gpu.description.empty();
    report_["gpu"] = JsonObject{{"there", gpu.there},
                                {"usable", usable},
                                {"description", gpu.description},
                                {"why_not", gpu.why_not}};
    row("gpu", usable ? gpu.description : gpu.there ? "not used" : "none");
    if (gpu.there && !usable) problem("The GPU is not used: " + gpu.why_not);
  }

  void measure_speed() {
    const Isa isa = available_isas().front();
    ThreadPool one(1);
    const Roofs alone = cpu_roofs(one, isa, kRoofSeconds);
    ThreadPool all(available_threads());
    const Roofs together = cpu_roofs(all, isa, kRoofSeconds);
    const auto describe = [](const Roofs& roofs) {
      return JsonObject{{"read_gb_per_s", roofs.read_bytes_per_second / 1e9},
                        {"int8_tera_products_per_s", roofs.int8_products_per_second / 1e12}};
    };
    report_["one_thread"] = describe(alone);
    report_["all_threads"] = describe(together);
    row("memory reads",
        cat(describe_rate(alone.read_bytes_per_second / 1e9), " GB/s with 1 thread, ",
            describe_rate(together.read_bytes_per_second / 1e9), " GB/s with ", all.threads()));
    row("int8 products",
        cat(describe_rate(alone.int8_products_per_second / 1e9), " G/s with 1 thread, ",
            describe_rate(together.int8_products_per_second / 1e9), " G/s with ", all.threads()));
  }

  void look_at_disk() {
    const Result<std::filesystem::path> folder = locate_model(model_);
    const Result<DiskSpeed> speed = folder.ok() ? measure_disk(folder.value(), kDiskSeconds)
                                                : Result<DiskSpeed>(folder.failure());
    if (!speed.ok()) return problem("The disk was not measured: " + speed.failure().message);
    const DiskSpeed& disk = speed.value();
    report_["disk"] = JsonObject{{"file", disk.file.string()},
                                 {"read_bytes", disk.bytes},
                                 {"gb_per_s", disk.bytes_per_second / 1e9},
                                 {"how", disk.how}};
    row("disk reads", cat(describe_rate(disk.bytes_per_second / 1e9), " GB/s (", disk.how, "), ",
                          disk.file.parent_path().string()));
  }

  void look_at_model() {
    const Result<ModelCheck> check = check_default_model();
    if (!check.ok()) {
      works_ = false;
      report_["default_model"] = JsonObject{{"works", false}, {"error", check.failure().message}};
      return problem("The default model does not work: " + check.failure().message);
    }
    const ModelCheck& model = check.value();
    report_["default_model"] = JsonObject{{"works", true},
                                          {"folder", model.folder.string()},
                                          {"load_seconds", model.load_seconds},
                                          {"tokens_per_second", model.tokens_per_second}};
    row("minnow", cat("loads in ", fixed(model.load_seconds, 2), " s, ",
                      describe_rate(model.tokens_per_second), " tok/s, ", model.folder.string()));
  }

  // Of the model that was named: headers, and whether the files are as long as those say.
  void look_at_files() {
    if (model_.empty()) return;
    const Result<std::filesystem::path> folder = locate_model(model_);
    if (!folder.ok()) {  // which measuring the disk has told
      works_ = false;
      report_["model"] = JsonObject{{"works", false}};
      return;
    }
    const Result<ModelSource> source = ModelSource::open(folder.value());
    report_["model"] = JsonObject{{"works", source.ok()}};
    if (!source.ok()) {
      works_ = false;
      return problem("The model cannot be loaded: " + source.failure().message);
    }
    row("model", cat("files have all that their headers say, ", folder.value().string()));
  }

  void look_at_folders() {
    JsonArray list;
    std::string name = "model caches";
    for (const CacheFolder& cache : look_at_caches(hugging_face_caches())) {
      list.push_back(JsonObject{{"path", cache.path.string()},
                                {"exists", cache.exists},
                                {"models", JsonArray(cache.models.begin(), cache.models.end())}});
      row(name, cat(cache.path.string(),
                    !cache.exists ? " (not there)" : cat(", ", cache.models.size(), " models")));
      name.clear();
      for (const std::string& model : cache.models) row("", "  " + model);
    }
    report_["model_caches"] = std::move(list);
  }

  void row(const std::string& name, const std::string& value) const {
    if (!json_) std::printf("%-15s %s\n", name.c_str(), value.c_str());
    std::fflush(stdout);
  }
  void problem(const std::string& text) { problems_.push_back(text); }

  Flags flags_;
  std::string model_;
  bool json_ = false;
  bool works_ = true;
  JsonObject report_;
  std::vector<std::string> problems_;
};

}  // namespace

std::unique_ptr<Verb> make_doctor_verb() { return std::make_unique<Doctor>(); }

}  // namespace slip
