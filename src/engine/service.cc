#include "engine/service.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/scheduler.h"

namespace slip {
namespace {

// Those of all running sequences are counted one by one, which is not done after every step.
constexpr double kPagesSeconds = 0.1;

}  // namespace

// The thread, and what others leave for it: requests and cancellations, taken between two steps.
class Service::Loop {
 public:
  Loop(Engine& engine, const Tokenizer& tokenizer, const ServiceOptions& options);
  ~Loop();

  std::variant<RequestId, Refusal> submit(Request request,
                                          std::shared_ptr<RequestListener> listener);
  void cancel(RequestId id);
  bool drain(double seconds);
  ServiceStats stats() const;
  int64_t context() const { return context_; }
  double silence() const;

 private:
  std::optional<Refusal> check_request(const Request& request) const;
  void run();
  // Waits for work and hands it over; false when the service ends.
  bool take_work();
  void publish();
  static int64_t now();  // nanoseconds

  Scheduler scheduler_;
  const int64_t context_, vocabulary_, segment_, capacity_;
  SequencePool::Pages pages_{};
  Stopwatch pages_counted_;

  mutable std::mutex mutex_;
  std::condition_variable work_;  // something was left, or the service ends
  std::condition_variable idle_;  // all requests have ended
  std::vector<std::unique_ptr<Job>> submitted_;
  std::vector<RequestId> cancelled_;
  uint64_t last_number_ = 0;
  int64_t open_requests_ = 0;  // taken and not ended
  bool accepting_ = true;
  bool ending_ = false;
  ServiceStats stats_;

  std::atomic<int64_t> step_began_{0};  // 0: nothing to do
  std::thread thread_;
};

Service::Loop::Loop(Engine& engine, const Tokenizer& tokenizer, const ServiceOptions& options)
    : scheduler_(engine, tokenizer, options),
      context_(engine.context()),
      vocabulary_(engine.model().info().vocabulary),
      segment_(Scheduler::segment_of(engine)),
      capacity_(options.max_queue + engine.sequences()) {
  publish();
  thread_ = std::thread([this] { run(); });
}

Service::Loop::~Loop() {
  {
    const std::lock_guard lock(mutex_);
    accepting_ = false;
    ending_ = true;
  }
  work_.notify_one();
  thread_.join();
}

std::optional<Refusal> Service::Loop::check_request(const Request& request) const {
  using Kind = Refusal::Kind;
  if (request.prompt.empty()) return Refusal{Kind::invalid, "the prompt is empty"};
  for (const int32_t id : request.prompt)
    if (id < 0 || id >= vocabulary_)
      return Refusal{Kind::invalid,
                     cat("token id ", id, " is outside the vocabulary of ", vocabulary_)};
  const auto length = int64_t(request.prompt.size());
  if (length > context_)
    return Refusal{Kind::too_long,
                   cat("the prompt has ", length, " tokens, the context holds ", context_)};
  return std::nullopt;
}

std::variant<RequestId, Refusal> Service::Loop::submit(Request request,
                                                       std::shared_ptr<RequestListener> listener) {
  if (std::optional<Refusal> refusal = check_request(request)) return *std::move(refusal);
  auto job = std::make_unique<Job>(std::move(request), std::move(listener), segment_);
  const std::lock_guard lock(mutex_);
  if (!accepting_) return Refusal{Refusal::Kind::stopping, "the service is about to stop"};
  if (open_requests_ >= capacity_)
    return Refusal{Refusal::Kind::queue_full,
                   cat(open_requests_, " requests are being answered or wait already")};
  ++open_requests_;
  job->id = RequestId(++last_number_);
  const RequestId id = job->id;
  submitted_.push_back(std::move(job));
  work_.notify_one();
  return id;
}

void Service::Loop::cancel(RequestId id) {
  const std::lock_guard lock(mutex_);
  cancelled_.push_back(id);
  work_.notify_one();
}

bool Service::Loop::drain(double seconds) {
  std::unique_lock lock(mutex_);
  accepting_ = false;
  return idle_.wait_for(lock, std::chrono::duration<double>(seconds),
                        [&] { return open_requests_ == 0; });
}

ServiceStats Service::Loop::stats() const {
  const std::lock_guard lock(mutex_);
  ServiceStats stats = stats_;
  stats.waiting += int64_t(submitted_.size());
  return stats;
}

int64_t Service::Loop::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Service::Loop::silence() const {
  const int64_t began = step_began_.load();
  return began == 0 ? 0 : double(now() - began) * 1e-9;
}

bool Service::Loop::take_work() {
  std::unique_lock lock(mutex_);
  if (scheduler_.idle()) {
    step_began_ = 0;
    work_.wait(lock, [&] { return ending_ || !submitted_.empty() || !cancelled_.empty(); });
  }
  step_began_ = now();
  for (auto& job : submitted_) scheduler_.add(std::move(job));
  submitted_.clear();
  for (const RequestId id : cancelled_) scheduler_.cancel(id);
  cancelled_.clear();
  return !ending_;
}

void Service::Loop::publish() {
  ServiceStats stats = scheduler_.stats();
  if (scheduler_.idle() || pages_counted_.seconds() >= kPagesSeconds) {
    pages_ = scheduler_.pages();
    pages_counted_ = {};
  }
  stats.pages = pages_.all;
  stats.free_pages = pages_.free;
  stats.remembered_pages = pages_.remembered;
  const std::lock_guard lock(mutex_);
  open_requests_ = stats.running + stats.waiting + int64_t(submitted_.size());
  stats_ = std::move(stats);
  if (open_requests_ == 0) idle_.notify_all();
}

void Service::Loop::run() {
  while (take_work()) {
    try {
      scheduler_.step();
    } catch (const std::exception& failure) {
      scheduler_.fail_running(error("a step failed: ", failure.what()));
    }
    publish();
  }
  scheduler_.end_all();
  publish();
}

Service::Service(Engine& engine, const Tokenizer& tokenizer, const ServiceOptions& options)
    : loop_(std::make_unique<Loop>(engine, tokenizer, options)) {}
Service::~Service() = default;

std::variant<RequestId, Refusal> Service::submit(Request request,
                                                 std::shared_ptr<RequestListener> listener) {
  return loop_->submit(std::move(request), std::move(listener));
}
void Service::cancel(RequestId id) { loop_->cancel(id); }
bool Service::drain(double seconds) { return loop_->drain(seconds); }
ServiceStats Service::stats() const { return loop_->stats(); }
int64_t Service::context() const { return loop_->context(); }
double Service::silence() const { return loop_->silence(); }

}  // namespace slip
