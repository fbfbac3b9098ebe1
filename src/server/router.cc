#include "server/router.h"

#include <algorithm>
#include <exception>

#include "server/http_answer.h"

namespace slip {
namespace {

bool matches(const std::string& pattern, const std::string& path) {
  if (!pattern.ends_with("/*")) return pattern == path;
  const size_t fixed = pattern.size() - 1;
  return path.size() > fixed && path.compare(0, fixed, pattern, 0, fixed) == 0;
}

// Whoever may GET may also ask for the head alone; the connection leaves the body out.
bool takes(const ApiRoute& route, const std::string& method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

// Null if there is none; `allowed` then has the methods that exist.
const ApiRoute* find(const std::vector<ApiRoute>& routes, const HttpRequest& request,
                     std::string& allowed) {
  for (const ApiRoute& route : routes) {
    if (!matches(route.path, request.path)) continue;
    if (takes(route, request.method)) return &route;
    allowed += (allowed.empty() ? "" : ", ") + route.method;
    if (route.method == "GET") allowed += ", HEAD";
  }
  return nullptr;
}

// What only memory running out can cause must cost this request alone.
void call(const HttpHandler& handler, const HttpRequest& request,
          const std::shared_ptr<HttpReply>& reply) {
  try {
    handler(request, reply);
  } catch (const std::exception& failure) {
    send(*reply, error_answer(request.path, server_error(failure.what())));
  }
}

}  // namespace

Router::Router(std::vector<ApiRoute> routes, int threads) : routes_(std::move(routes)) {
  for (int i = 0; i < threads; ++i) {
    const size_t longest_body = i == 1 ? kShortBody : SIZE_MAX;
    threads_.emplace_back([this, longest_body] { work(longest_body); });
  }
}

Router::~Router() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    jobs_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Router::handle(HttpRequest request, const std::shared_ptr<HttpReply>& reply) {
  std::string allowed;
  const ApiRoute* route = find(routes_, request, allowed);
  if (!route)
    return send(*reply,
                allowed.empty() ? no_such_path(request.path) : wrong_method(request.path, allowed));
  if (route->quick) return call(route->handler, request, reply);
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return send(*reply, error_answer(request.path, unavailable("shutting down")));
    if (jobs_.size() >= kMostWaiting)
      return send(*reply, error_answer(request.path, unavailable("too many requests wait")));
    jobs_.push_back({&route->handler, std::move(request), reply});
  }
  changed_.notify_all();  // not every thread takes every request
}

void Router::work(size_t longest_body) {
  const auto next_job = [&] {
    return std::ranges::find_if(
        jobs_, [&](const Job& job) { return job.request.body.size() <= longest_body; });
  };
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ended_ || next_job() != jobs_.end(); });
    if (ended_) return;
    const auto next = next_job();
    Job job = std::move(*next);
    jobs_.erase(next);
    lock.unlock();
    if (!job.reply->client_left()) call(*job.handler, job.request, job.reply);
    job = {};  // the last reference may be this one, and logging takes its time
    lock.lock();
  }
}

}  // namespace slip
