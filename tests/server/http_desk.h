// A server whose replies the test gives, asked over a real port.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/http_server.h"
#include "tests/server/http_client.h"

namespace slip {

// Holds replies until the test gives them, and counts clients that left.
class Desk {
 public:
  explicit Desk(HttpServerOptions options = {}) {
    HttpServer::Hooks hooks;
    hooks.handler = [this](const HttpRequest& request, std::shared_ptr<HttpReply> reply) {
      handle(request, std::move(reply));
    };
    hooks.log = [this](const HttpRecord& record) {
      const std::lock_guard lock(mutex_);
      log_.push_back(record);
      changed_.notify_all();
    };
    auto started = HttpServer::start(options, std::move(hooks));
    EXPECT_TRUE(started.ok()) << (started.ok() ? "" : started.failure().message);
    server = std::move(started).value();
  }
  ~Desk() {
    replies_.clear();
    server = nullptr;
  }

  std::unique_ptr<HttpServer> server;

  RawClient client() const { return RawClient(server->port()); }

  std::shared_ptr<HttpReply> wait_for_reply(size_t count = 1) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return replies_.size() >= count; });
    return replies_.size() >= count ? replies_[count - 1] : nullptr;
  }
  void drop_replies() {
    std::vector<std::shared_ptr<HttpReply>> dropped;
    const std::lock_guard lock(mutex_);
    dropped.swap(replies_);
  }
  // How long until `count` clients have left; negative if they do not.
  double wait_for_leavers(int count) {
    const Stopwatch clock;
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, std::chrono::seconds(10), [&] { return leavers_ >= count; });
    return came ? clock.seconds() : -1;
  }
  int leavers() {
    const std::lock_guard lock(mutex_);
    return leavers_;
  }
  std::vector<HttpRecord> wait_for_log(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return log_.size() >= count; });
    return log_;
  }

 private:
  void handle(const HttpRequest& request, std::shared_ptr<HttpReply> reply) {
    if (request.path == "/echo")
      return reply->send(200, "text/plain",
                         request.method + " " + request.query + " " + request.body);
    if (request.path.ends_with("/lost")) return;  // a handler that forgets its reply
    reply->on_close([this] {
      const std::lock_guard lock(mutex_);
      ++leavers_;
      changed_.notify_all();
    });
    if (request.path == "/events") reply->begin(200, "text/event-stream");
    const std::lock_guard lock(mutex_);
    replies_.push_back(std::move(reply));
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::shared_ptr<HttpReply>> replies_;
  std::vector<HttpRecord> log_;
  int leavers_ = 0;
};

}  // namespace slip
