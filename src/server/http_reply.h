// The HttpReply that handlers hold: from any thread to the connection, and to the log at the end.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "server/http.h"
#include "server/http_server.h"

namespace slip {

// Hands work to the I/O thread, until that has ended.
class IoQueue {
 public:
  virtual ~IoQueue() = default;
  virtual void post(std::function<void()> work) = 0;
};

struct ReplyHead {
  int status;
  std::string content_type;
  HttpHeaders headers;
};

// What a reply may ask of its connection, on the I/O thread.
class ReplyTarget {
 public:
  virtual ~ReplyTarget() = default;
  virtual void reply_on_close(uint64_t exchange, std::function<void()> callback) = 0;
  virtual void reply_whole(uint64_t exchange, ReplyHead head, std::string body) = 0;
  virtual void reply_begin(uint64_t exchange, ReplyHead head) = 0;
  virtual void reply_write(uint64_t exchange, std::string piece) = 0;
  virtual void reply_end(uint64_t exchange) = 0;
  // Nobody holds the reply any more.
  virtual void reply_dropped(uint64_t exchange) = 0;
};

// What will be logged; the connection adds that the client left.
class ReplyRecord {
 public:
  ReplyRecord(const HttpRequest& request, std::string client);
  void set_status(int status);
  void set_client_left();
  bool client_left() const;
  void add(const TokenUsage& usage);
  HttpRecord take();

 private:
  mutable std::mutex mutex_;
  Stopwatch clock_;
  HttpRecord record_;
  bool client_left_ = false;
};

class Reply final : public HttpReply {
 public:
  struct Way {
    std::shared_ptr<IoQueue> queue;
    std::weak_ptr<ReplyTarget> connection;
    uint64_t exchange = 0;
  };
  Reply(Way way, std::shared_ptr<ReplyRecord> record, HttpLog log);
  ~Reply() override;

  bool client_left() const override;
  void on_close(std::function<void()> callback) override;
  void send(int status, std::string_view content_type, std::string body,
            const HttpHeaders& headers) override;
  void begin(int status, std::string_view content_type, const HttpHeaders& headers) override;
  void write(std::string piece) override;
  void end() override;
  void add_usage(const TokenUsage& usage) override;

 private:
  template <class Action>
  void post(Action action);

  Way way_;
  std::shared_ptr<ReplyRecord> record_;
  HttpLog log_;
};

}  // namespace slip
