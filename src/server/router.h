// Finds the handler of a request. Handlers that take a while, because they render and tokenise
// prompts, run on threads of their own: on the server's thread they would hold up all streams.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "server/api.h"
#include "server/http.h"

namespace slip {

class Router {
 public:
  // Requests that may wait for a thread: beyond the connections a server has, clients that left.
  static constexpr size_t kMostWaiting = 2048;

  // `threads` for handlers that are not quick.
  Router(std::vector<ApiRoute> routes, int threads);
  // Waits for handlers that have begun; requests that wait are dropped.
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  void handle(HttpRequest request, const std::shared_ptr<HttpReply>& reply);

 private:
  struct Job {
    const HttpHandler* handler;
    HttpRequest request;
    std::shared_ptr<HttpReply> reply;
  };
  void work();

  const std::vector<ApiRoute> routes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace slip
