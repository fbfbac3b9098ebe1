#include "models/gemma4_assistant/files.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/files.h"
#include "models/gemma4_assistant/weights.h"

namespace slip::gemma4_assistant {
namespace {

namespace fs = std::filesystem;

fs::path assistant_of(const fs::path& path) { return {path.string() + "-assistant"}; }

}  // namespace

std::unique_ptr<WeightSource> DrafterFiles::weight_source() const {
  return origin.open({"masked_embedding.token_ordering", "lm_head."});
}

Result<DrafterFiles> open_drafter(const fs::path& folder, const gemma4::Config& target) {
  SLIP_TRY(const JsonObject json, read_config_json(folder));
  SLIP_TRY(DrafterConfig config, read_drafter_config(json, (folder / "config.json").string()));
  if (Status fits = attach(config, target); !fits.ok())
    return std::move(fits).failure().in(folder.string());
  SLIP_TRY(Checkpoint checkpoint, Checkpoint::open(folder));
  SLIP_TRY(auto token_order, read_token_order(checkpoint, config));
  if (!token_order) config.clusters = config.chosen_clusters = 0;
  return DrafterFiles{config, WeightOrigin(std::move(checkpoint)), std::move(token_order)};
}

DrafterFiles synthetic_drafter(const DrafterConfig& config) {
  const auto bf16 = [](const std::string&) { return WeightFormat::bf16; };
  DrafterFiles files{config, WeightOrigin(bf16), std::nullopt};
  if (config.clusters == 0) return files;
  files.token_order.emplace();
  for (int32_t id = 0; id < config.text.vocabulary; ++id) files.token_order->push_back(id);
  return files;
}

std::optional<fs::path> find_drafter(const fs::path& folder) {
  std::error_code code;
  fs::path model = fs::absolute(folder, code).lexically_normal();
  if (!model.has_filename()) model = model.parent_path();
  std::vector<fs::path> candidates = {model / "assistant", assistant_of(model)};
  // A cache has models--ORG--NAME/snapshots/COMMIT for each repository.
  if (model.parent_path().filename() == "snapshots") {
    const fs::path repository = assistant_of(model.parent_path().parent_path());
    if (const auto main = read_text_file(repository / "refs/main", 4096); main.ok())
      candidates.push_back(repository / "snapshots" / trimmed(main.value()));
    const size_t named = candidates.size();
    fs::directory_iterator snapshot(repository / "snapshots", code);
    for (; !code && snapshot != fs::directory_iterator(); snapshot.increment(code))
      candidates.push_back(snapshot->path());
    std::sort(candidates.begin() + int64_t(named), candidates.end());
  }
  for (const fs::path& candidate : candidates)
    if (fs::exists(candidate / "config.json", code)) return candidate;
  return std::nullopt;
}

}  // namespace slip::gemma4_assistant
