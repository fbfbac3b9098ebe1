#include "checkpoint/model_location.h"

#include <string_view>

#include "base/ascii.h"
#include "base/files.h"
#include "base/repo_id.h"
#include "base/text.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code code;
  return fs::is_directory(path, code);
}

// refs/<branch or tag> holds a commit; a commit is a folder of snapshots/.
Result<fs::path> find_snapshot(const fs::path& repo, const RepoId& id) {
  const fs::path direct = repo / "snapshots" / id.revision;
  if (is_folder(direct)) return direct;
  const fs::path ref = repo / "refs" / id.revision;
  std::error_code code;
  if (!fs::exists(ref, code))
    return error(repo.string(), ": has no revision ", id.revision, " (looked for snapshots/",
                 id.revision, " and refs/", id.revision, "); get it with: slipstream pull ",
                 id.full(), "@", id.revision);
  SLIP_TRY(const std::string text, read_text_file(ref, 4096));
  const std::string commit(trimmed(text));
  if (!is_plain_component(commit))
    return error(ref.string(), ": expected the name of a commit, found something else");
  const fs::path snapshot = repo / "snapshots" / commit;
  if (!is_folder(snapshot))
    return error(snapshot.string(), ": no such folder, but ", ref.string(),
                 " names it; get it again with: slipstream pull ", id.full());
  return snapshot;
}

}  // namespace

Result<fs::path> find_model(const std::string& name, const LocationOptions& options) {
  if (is_folder(name)) return fs::path(name);
  std::error_code code;
  if (fs::exists(name, code))
    return error(name, ": is a file; expected the folder of a model, with config.json in it");
  const auto id = parse_repo_id(name);
  if (!id)
    return error("\"", name,
                 "\": no such folder, and not a Hugging Face name (org/name[@revision])");

  std::string looked_in;
  for (const fs::path& cache : options.hf_cache_dirs) {
    for (const fs::path& hub : {cache, cache / "hub"}) {
      const fs::path repo = hub / id->cache_folder();
      if (is_folder(repo)) return find_snapshot(repo, *id);
      looked_in += cat(looked_in.empty() ? "" : ", ", repo.string());
    }
  }
  return error(name, ": no such folder, and not in the Hugging Face cache (looked for ",
               looked_in.empty() ? "nothing: no cache folder is known" : looked_in,
               "); get it with: slipstream pull ", id->full());
}

}  // namespace slip
