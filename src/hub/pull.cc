#include "hub/pull.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <thread>

#include "base/files.h"

namespace slip {
namespace {

std::string gigabytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f GB", double(bytes) / 1e9);
  return text;
}

// Nothing if we were interrupted first.
Result<std::optional<RepoLock>> wait_for_lock(const RepoCache& cache, PullListener& listener,
                                              const StopFlag& stop) {
  for (bool told = false; !stop.raised(); told = true) {
    SLIP_TRY(std::optional<RepoLock> lock, RepoLock::try_take(cache.lock_file()));
    if (lock) return lock;
    if (!told) listener.waiting_for_another();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return std::optional<RepoLock>();
}

bool is_intact(const RepoCache& cache, const RemoteFile& file, const StopFlag& stop) {
  std::FILE* blob = std::fopen(cache.blob(file).c_str(), "rb");
  if (!blob) return false;
  Digest digest = file.digest();
  std::vector<char> buffer(4 << 20);
  size_t count;
  while (!stop.raised() && (count = std::fread(buffer.data(), 1, buffer.size(), blob)) > 0)
    digest.add(std::span(buffer).first(count));
  std::fclose(blob);
  return stop.raised() || digest.finish() == file.oid;
}

// Small files first: they take no time.
void put_in_order(std::vector<RemoteFile>& files) {
  std::sort(files.begin(), files.end(), [](const RemoteFile& a, const RemoteFile& b) {
    return std::pair(a.sha256, a.path) < std::pair(b.sha256, b.path);
  });
}

class Puller {
 public:
  Puller(const PullRequest& request, PullListener& listener, const std::atomic<bool>& interrupted)
      : request_(request),
        listener_(listener),
        interrupted_(interrupted),
        stop_(interrupted),
        cache_(request.hub_folder, request.repo) {}

  Result<PullResult> run() {
    SLIP_TRY(const TlsContext tls, TlsContext::make(request_.hub.authorities));
    SLIP_TRY(HubClient hub, HubClient::make(request_.hub, tls, stop_));
    hub.on_retry([this](const std::string& why) { listener_.trying_again(why); });
    Result<RepoListing> listing = list_repo(hub, request_.repo);
    if (stop_.raised()) return ended(PullResult::End::interrupted);
    if (!listing.ok()) return std::move(listing).failure();
    SLIP_TRY(files_, choose_files(listing.value().files, request_.files));
    put_in_order(files_);
    result_.plan.commit = listing.value().commit;
    result_.folder = cache_.snapshot(result_.plan.commit);

    SLIP_TRY(const std::optional<RepoLock> lock, wait_for_lock(cache_, listener_, stop_));
    if (!lock) return ended(PullResult::End::interrupted);
    SLIP_TRY_STATUS(cache_.prepare());
    SLIP_TRY_STATUS(make_plan());
    if (stop_.raised()) return ended(PullResult::End::interrupted);
    if (!listener_.planned(result_.plan)) return ended(PullResult::End::declined);
    SLIP_TRY_STATUS(check_space());

    const Status downloaded = download_all(tls);
    if (!downloaded.ok() && interrupted_.load()) return ended(PullResult::End::interrupted);
    SLIP_TRY_STATUS(downloaded);
    if (!cache_.is_published(result_.plan.commit, files_))
      SLIP_TRY_STATUS(cache_.publish(result_.plan.commit, files_));
    return ended(PullResult::End::complete);
  }

 private:
  PullResult ended(PullResult::End end) {
    result_.end = end;
    return result_;
  }

  Status make_plan() {
    PullPlan& plan = result_.plan;
    std::map<std::string, uint64_t> seen;  // the same content may have several names
    for (const RemoteFile& file : files_) {
      const auto [known, fresh] = seen.emplace(file.oid, file.size);
      if (known->second != file.size) return error(file.path, ": the hub lists two sizes for it");
      plan.files += 1;
      if (!fresh) continue;
      plan.bytes += file.size;
      bool there = cache_.has_blob(file);
      if (there && request_.verify_present && !is_intact(cache_, file, stop_)) {
        listener_.damaged(file.path);
        there = false;
      }
      if (there) continue;
      missing_.push_back({file, file_address(request_.repo, plan.commit, file), cache_.blob(file)});
      plan.bytes_to_fetch += file.size;
      plan.bytes_resumed +=
          PartialFile::bytes_there(cache_.blob(file), file.size, request_.download.piece_bytes);
    }
    return {};
  }

  // config.json before everything else: what it says may end it all before gigabytes are here.
  Status download_all(const TlsContext& tls) {
    const auto config = std::ranges::find(files_, "config.json", &RemoteFile::path);
    if (config != files_.end() && !missing_.empty()) {
      const auto others = std::stable_partition(
          missing_.begin(), missing_.end(),
          [&](const DownloadItem& item) { return item.remote.oid == config->oid; });
      SLIP_TRY_STATUS(fetch(tls, {missing_.begin(), others}, [](const auto&) {}));
      missing_.erase(missing_.begin(), others);
      constexpr uint64_t kLongestConfig = 16 << 20;
      SLIP_TRY(const std::string text, read_text_file(cache_.blob(*config), kLongestConfig));
      SLIP_TRY_STATUS(listener_.configured(text, weight_bytes()));
    }
    return fetch(tls, missing_, [&](const auto& now) { listener_.progressed(now); });
  }

  Status fetch(const TlsContext& tls, const std::vector<DownloadItem>& items,
               const std::function<void(const DownloadProgress&)>& on_progress) {
    return download({.repo = request_.repo,
                     .items = items,
                     .hub = request_.hub,
                     .tls = tls,
                     .options = request_.download},
                    stop_, on_progress);
  }

  uint64_t weight_bytes() const {
    uint64_t bytes = 0;
    for (const RemoteFile& file : files_)
      if (file.path.ends_with(".safetensors")) bytes += file.size;
    return bytes;
  }

  Status check_space() const {
    constexpr uint64_t kReserve = 64 << 20;  // a file system that is full to the brim helps nobody
    uint64_t needed = 0;
    for (const DownloadItem& item : missing_)
      needed += item.remote.size - std::min(item.remote.size, PartialFile::disk_bytes(item.target));
    if (needed == 0) return {};
    SLIP_TRY(const uint64_t there, cache_.free_bytes());
    if (needed + kReserve <= there) return {};
    return error(request_.hub_folder.string(), ": ", gigabytes(needed),
                 " more are needed, but only ", gigabytes(there),
                 " are free; make room, or choose another disk with HF_HOME");
  }

  const PullRequest& request_;
  PullListener& listener_;
  const std::atomic<bool>& interrupted_;
  StopFlag stop_;  // also raised by a failure
  RepoCache cache_;
  std::vector<RemoteFile> files_;
  std::vector<DownloadItem> missing_;
  PullResult result_;
};

}  // namespace

Result<PullResult> pull(const PullRequest& request, PullListener& listener,
                        const std::atomic<bool>& interrupted) {
  return Puller(request, listener, interrupted).run();
}

}  // namespace slip
