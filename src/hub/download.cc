#include "hub/download.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace slip {
namespace {

constexpr auto kTick = std::chrono::milliseconds(100);
constexpr int kMostFetches = 2;  // of a file whose checksum is wrong

class Download {
 public:
  Download(const DownloadJob& job, StopFlag& stop, std::vector<PartialFile>& files)
      : job_(job), stop_(stop), files_(files), queue_(files) {}

  Status run(const std::function<void(const DownloadProgress&)>& on_progress) {
    std::vector<std::thread> threads;
    threads.reserve(size_t(job_.options.connections) + 1);
    for (int i = 0; i < job_.options.connections; ++i) threads.emplace_back([this] { fetch(); });
    threads.emplace_back([this] { verify(); });
    {
      std::unique_lock lock(mutex_);
      while (!finished_ && !stop_.raised()) {
        changed_.wait_for(lock, kTick);
        lock.unlock();
        on_progress(progress());
        lock.lock();
      }
    }
    queue_.close();
    for (std::thread& thread : threads) thread.join();
    on_progress(progress());
    const std::scoped_lock lock(mutex_);
    if (failure_) return *failure_;
    if (!finished_) return error("stopped");
    return {};
  }

 private:
  // A connection's life: piece after piece, with pauses when something goes wrong.
  void fetch() {
    Result<HubClient> hub = HubClient::make(job_.hub, job_.tls, stop_);
    if (!hub.ok()) return fail(hub.failure());
    PieceFetcher fetcher(job_.repo, hub.value(), queue_);
    int failures = 0;
    while (std::optional<PieceJob> job = queue_.take()) {
      const PieceFetcher::Outcome outcome =
          fetcher.fetch(job_.items[job->file], files_[job->file], *job);
      queue_.give_back(*job);
      if (stop_.raised()) return;
      if (!outcome.trouble) {
        failures = 0;
        continue;
      }
      failures = outcome.bytes > 0 ? 1 : failures + 1;
      const HubTrouble& trouble = *outcome.trouble;
      if (!trouble.worth_retrying) return fail(error(trouble.message));
      if (failures >= job_.hub.retries.attempts)
        return fail(error(trouble.message, "; gave up after ", failures,
                          " attempts; what has come is kept, so run it again to go on"));
      note(trouble.message);
      hub.value().pause(std::max(trouble.wait_seconds, job_.hub.retries.wait_seconds(failures)));
    }
  }

  // Follows the workers, file by file.
  void verify() {
    for (size_t i = 0; i < files_.size(); ++i) {
      for (int fetches = 1;; ++fetches) {
        const Result<std::string> found = checksum(i);
        if (!found.ok()) return fail(found.failure());
        if (stop_.raised()) return;
        const RemoteFile& wanted = job_.items[i].remote;
        if (found.value() == wanted.oid) break;
        const std::string message =
            cat(wanted.path, ": wrong checksum: expected ", wanted.oid, ", found ", found.value());
        files_[i].start_again();
        verified_ -= wanted.size;
        if (fetches == kMostFetches) return fail(error(message, ", ", fetches, " times over"));
        note(message);
        queue_.look_again();
      }
      if (const Status named = files_[i].finish(); !named.ok()) return fail(named.failure());
    }
    const std::scoped_lock lock(mutex_);
    finished_ = true;
    changed_.notify_all();
  }

  Result<std::string> checksum(size_t index) {
    constexpr size_t kStep = 4 << 20;
    const PartialFile& file = files_[index];
    Digest digest = job_.items[index].remote.digest();
    std::vector<char> buffer(size_t(std::min<uint64_t>(kStep, file.size())));
    for (uint64_t at = 0, ready = 0; at < file.size();) {
      ready = file.bytes_done_in_a_row(ready);
      const uint64_t step = std::min<uint64_t>(kStep, ready - at);
      if (stop_.raised()) return std::string();
      if (step < kStep && ready < file.size()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        continue;
      }
      const std::span<char> bytes = std::span(buffer).first(size_t(step));
      SLIP_TRY_STATUS(file.read(at, bytes));
      digest.add(bytes);
      file.begin_writing_out(at, step);
      at += step;
      verified_ += step;
    }
    return digest.finish();
  }

  DownloadProgress progress() {
    DownloadProgress progress;
    for (const PartialFile& file : files_) {
      progress.total += file.size();
      progress.done += file.bytes_done();
    }
    progress.verified = verified_;
    const std::scoped_lock lock(mutex_);
    progress.trouble = trouble_;
    progress.troubles = troubles_;
    return progress;
  }

  void note(const std::string& trouble) {
    const std::scoped_lock lock(mutex_);
    trouble_ = trouble;
    ++troubles_;
  }

  void fail(const Error& failure) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = failure;
    stop_.raise();
    changed_.notify_all();
  }

  const DownloadJob& job_;
  StopFlag& stop_;
  std::vector<PartialFile>& files_;
  PieceQueue queue_;
  std::atomic<uint64_t> verified_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Error> failure_;
  std::string trouble_;
  uint64_t troubles_ = 0;
  bool finished_ = false;
};

}  // namespace

Status download(const DownloadJob& job, StopFlag& stop,
                const std::function<void(const DownloadProgress&)>& on_progress) {
  std::vector<PartialFile> files;
  files.reserve(job.items.size());
  for (const DownloadItem& item : job.items) {
    SLIP_TRY(PartialFile file,
             PartialFile::open(item.target, item.remote.size, job.options.piece_bytes));
    files.push_back(std::move(file));
  }
  return Download(job, stop, files).run(on_progress);
}

}  // namespace slip
