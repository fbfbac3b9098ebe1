// Finds the handler of a request. Handlers that take a while, because they render and tokenise
// prompts, run on the router's own threads: on the server's thread they would hold up all streams.
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
  // How many requests may wait for a thread. A server has half as many connections, with one
  // request each: the others are of clients that have hung up, which is noticed when their turn
  // comes.
  static constexpr size_t kMostWaiting = 2048;

  // Bodies that are longer may take seconds each.
  static constexpr size_t kShortBody = 1 << 20;

  // `threads`: how many run the handlers of routes that are not marked as quick. Where there are
  // several, one of them takes only requests with short bodies, which then never wait for long
  // ones.
  Router(std::vector<ApiRoute> routes, int threads);
  // Waits for handlers that have begun. Requests that still wait for a thread are dropped.
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
  void work(size_t longest_body);

  const std::vector<ApiRoute> routes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;
  bool ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace slip
