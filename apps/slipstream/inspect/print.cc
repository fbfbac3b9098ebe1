#include "engine/memory_plan.h"
#include "slipstream/common/numbers.h"
#include "slipstream/inspect/report.h"

namespace slip {
namespace {

// "122.1 B", "38.7 M"
std::string describe_count(uint64_t count) {
  const bool billions = count >= 1'000'000'000;
  return cat(fixed(double(count) / (billions ? 1e9 : 1e6), 1), billions ? " B" : " M");
}

// Small tensors in kB, where describe_bytes() says 0.0 MB.
std::string describe_size(uint64_t bytes) {
  if (bytes >= 1'000'000) return describe_bytes(bytes);
  return cat(fixed(double(bytes) / 1e3, 1), " kB");
}

std::string right(const std::string& text, size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

std::string left(const std::string& text, size_t width) {
  return text.size() >= width ? text : text + std::string(width - text.size(), ' ');
}

void print_row(std::string& out, const std::string& name, const std::string& value) {
  out += left(name, 18) + value + "\n";
}

void print_tensors(std::string& out, const InspectReport& report) {
  const char* title = report.folder.empty() ? "Would be stored" : "Stored tensors";
  out += cat("\n", left(title, 20), "  ", left("format", 8), right("size", 9), right("tensors", 9),
             "\n");
  for (const auto& [tensor_class, formats] : report.stored) {
    std::string name = name_of(tensor_class);
    for (const auto& [format, sized] : formats) {
      out += cat("  ", left(name, 18), left(format, 8), right(describe_size(sized.bytes), 11),
                 right(with_commas(int64_t(sized.tensors)), 9), "\n");
      name.clear();
    }
  }
  out += cat("  ", left("total", 26), right(describe_bytes(report.stored_bytes), 11), "\n");
}

void print_needs(std::string& out, const InspectReport& report) {
  out += cat("\nMemory for one user (", name_of(report.kv), " keys and values)\n");
  out += cat("  ", right("context", 9), right("weights", 12), right("working", 11),
             right("state", 11), right("keys, values", 14), right("total", 12), "\n");
  for (const ContextNeed& need : report.needs)
    out += cat("  ", right(with_commas(need.context), 9),
               right(describe_bytes(report.weight_bytes), 12),
               right(describe_bytes(report.activation_bytes), 11),
               right(describe_bytes(report.state_bytes), 11), right(describe_bytes(need.kv), 14),
               right(describe_bytes(need.total), 12), "\n");
  if (report.has_mtp)
    out +=
        cat("  The MTP layer adds ", describe_bytes(report.mtp_bytes), " when drafting is on.\n");
}

// "6 delta net, 2 attention"
std::string describe_layers(const InspectReport& report) {
  std::string out;
  const auto add = [&](int64_t count, const char* what) {
    if (count > 0) out += cat(out.empty() ? "" : ", ", count, " ", what);
  };
  add(report.delta_net_layers, "delta net");
  add(report.attention_layers, "attention");
  add(report.window_layers, "attention within a window");
  add(report.shared_layers, "attention to another layer's keys");
  return out;
}

}  // namespace

std::string report_text(const InspectReport& report) {
  std::string out;
  print_row(out, "model", report.name);
  if (report.folder.empty()) {
    print_row(out, "files", "none: a published shape, as its files would hold it");
  } else {
    print_row(out, "folder", report.folder);
  }
  print_row(out, "type", report.info.family);
  print_row(out, "parameters",
            cat(describe_count(report.parameters), ", of which a token meets ",
                describe_count(report.active_parameters),
                report.has_mtp
                    ? cat("; the MTP layer has ", describe_count(report.mtp_parameters), " more")
                    : ""));
  print_row(out, "layers", cat(report.info.layers, ": ", describe_layers(report)));
  if (report.experts > 0)
    print_row(out, "experts",
              cat(report.experts, " per layer, ", report.experts_per_token,
                  " per token, and one that all tokens meet"));
  print_row(out, "hidden size", with_commas(report.info.hidden));
  print_row(out, "vocabulary", with_commas(report.info.vocabulary));
  print_row(out, "context", cat("up to ", with_commas(report.info.max_context)));
  print_row(out, "MTP layer", report.has_mtp ? "yes" : "no");
  print_tensors(out, report);

  out += cat("\nOn ", report.backend, "\n");
  for (const auto& [format, bytes] : report.formats)
    out += cat("  ", left(name_of(format), 18), right(describe_bytes(bytes), 11), "  ",
               path_of(format), "\n");
  out += cat("  A token reads ", describe_bytes(report.active_bytes_per_token), " of weights.\n");
  print_needs(out, report);
  if (!report.notes.empty()) out += "\nNotes\n";
  for (const std::string& note : report.notes) out += "  " + note + "\n";
  return out;
}

JsonObject report_json(const InspectReport& report) {
  JsonArray tensors, formats, needs;
  for (const auto& [tensor_class, by_format] : report.stored)
    for (const auto& [format, sized] : by_format)
      tensors.push_back(JsonObject{{"class", name_of(tensor_class)},
                                   {"format", format},
                                   {"tensors", sized.tensors},
                                   {"bytes", sized.bytes}});
  for (const auto& [format, bytes] : report.formats)
    formats.push_back(
        JsonObject{{"format", name_of(format)}, {"bytes", bytes}, {"kernels", path_of(format)}});
  for (const ContextNeed& need : report.needs)
    needs.push_back(JsonObject{{"context", need.context},
                               {"weights", report.weight_bytes},
                               {"activations", report.activation_bytes},
                               {"state", report.state_bytes},
                               {"kv", need.kv},
                               {"total", need.total}});
  JsonObject object{{"model", report.name},
                    {"model_type", report.info.family},
                    {"parameters", report.parameters},
                    {"active_parameters", report.active_parameters},
                    {"mtp_parameters", report.mtp_parameters},
                    {"layers", JsonObject{{"total", report.info.layers},
                                          {"delta_net", report.delta_net_layers},
                                          {"attention", report.attention_layers},
                                          {"window", report.window_layers},
                                          {"shared_keys", report.shared_layers}}},
                    {"experts", report.experts},
                    {"experts_per_token", report.experts_per_token},
                    {"hidden", report.info.hidden},
                    {"vocabulary", report.info.vocabulary},
                    {"max_context", report.info.max_context},
                    {"mtp", report.has_mtp},
                    {"tensors", std::move(tensors)},
                    {"stored_bytes", report.stored_bytes},
                    {"backend", report.backend},
                    {"formats", std::move(formats)},
                    {"weight_bytes", report.weight_bytes},
                    {"mtp_bytes", report.mtp_bytes},
                    {"active_bytes_per_token", report.active_bytes_per_token},
                    {"kv_type", name_of(report.kv)},
                    {"memory", std::move(needs)},
                    {"notes", JsonArray(report.notes.begin(), report.notes.end())}};
  if (!report.folder.empty()) object["folder"] = report.folder;
  return object;
}

}  // namespace slip
