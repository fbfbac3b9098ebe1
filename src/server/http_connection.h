// One client's connection: reads requests one after the other, and writes the reply of each.
// Everything happens on the I/O thread; the replies that handlers hold post to it.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>

#include "server/http_reply.h"
#include "server/http_server.h"
#include "server/http_transport.h"

namespace slip {

class HttpConnection : public ReplyTarget, public std::enable_shared_from_this<HttpConnection> {
 public:
  // What all connections of a server have in common.
  struct Shared {
    boost::asio::io_context& io;
    HttpServerOptions options;
    HttpServer::Hooks hooks;
    std::shared_ptr<IoQueue> queue;
    std::function<void(HttpConnection*)> on_gone;
    // The bytes of all bodies that are held at present, at most options.bodies_bytes. Shared,
    // because requests may outlive the server.
    std::shared_ptr<std::atomic<size_t>> body_bytes = std::make_shared<std::atomic<size_t>>(0);
  };

  HttpConnection(Shared& shared, std::shared_ptr<HttpTransport> transport, std::string client);

  const std::string& client() const { return client_; }

  void start();
  // Instead of start(): answers 503, because there are too many connections, and closes.
  void start_refusing();
  // Takes no more requests. Closes when the client has read the reply to the present one, or at
  // once if there is none.
  void finish();
  void close();

  // Called for the replies that handlers hold. `exchange` is the number of the request that is
  // answered: calls for an earlier one, from a handler that is late, do nothing.
  void reply_on_close(uint64_t exchange, std::function<void()> callback) override;
  void reply_whole(uint64_t exchange, ReplyHead head, std::string body) override;
  void reply_begin(uint64_t exchange, ReplyHead head) override;
  void reply_write(uint64_t exchange, std::string piece) override;
  void reply_end(uint64_t exchange) override;
  void reply_dropped(uint64_t exchange) override;

 private:
  enum class State {
    reading,    // a request, or waiting for one
    answering,  // until the reply has been handed to the system
    lingering,  // the last reply is out; what still comes in is thrown away
    closed,
  };
  // Counts the bytes of one body in Shared::body_bytes, until the last holder of the body is gone.
  class BodyCharge {
   public:
    explicit BodyCharge(std::shared_ptr<std::atomic<size_t>> total) : total_(std::move(total)) {}
    ~BodyCharge() { *total_ -= bytes_; }
    BodyCharge(const BodyCharge&) = delete;
    BodyCharge& operator=(const BodyCharge&) = delete;
    void add(size_t bytes) {
      *total_ += bytes;
      bytes_ += bytes;
    }

   private:
    std::shared_ptr<std::atomic<size_t>> total_;
    size_t bytes_ = 0;
  };
  enum class Phase { waiting, streaming, complete };  // of the reply

  void read_more();
  void on_read(bool ok, size_t bytes);
  void on_end_of_input();
  void advance();
  void admit();
  // Counts bytes of the body that have come. False if all bodies together would then be too long.
  bool add_body_bytes(size_t bytes);
  void dispatch();
  std::shared_ptr<Reply> begin_exchange(const HttpRequest& request);
  void answer_at_once(HttpRequest request, HttpAnswer answer, bool last);
  void refuse_request(const ApiError& error);

  std::string head_bytes(const ReplyHead& head, std::string_view framing) const;
  void queue_bytes(std::string bytes);
  void queue_piece(std::string_view piece);
  void flush();
  void on_written(bool ok, size_t bytes);
  void on_reply_out();
  void linger();
  void tell_closed();

  void set_deadline(double seconds);
  void on_deadline();
  void start_pings();

  bool is_current(uint64_t exchange) const {
    return state_ == State::answering && exchange == exchange_ && phase_ != Phase::complete;
  }

  Shared& shared_;
  std::shared_ptr<HttpTransport> transport_;
  std::string client_;
  boost::asio::steady_timer deadline_, ping_;

  State state_ = State::reading;
  bool reading_ = false;      // a read is under way
  bool input_ended_ = false;  // the client will send no more
  bool last_request_ = false;
  std::array<char, 16384> chunk_;
  std::string buffer_;  // read, not yet understood
  std::unique_ptr<HttpParser> parser_;
  std::shared_ptr<BodyCharge> charge_;  // of the body that is read

  uint64_t exchange_ = 0;
  Phase phase_ = Phase::complete;
  bool head_only_ = false, chunked_ = false;
  std::string path_;  // of the request
  HttpHeaders extra_headers_;
  std::shared_ptr<ReplyRecord> record_;
  std::function<void()> on_close_;
  bool interrupted_ = false;  // the client left, or was too slow, before the reply was complete

  std::string pending_, in_flight_;
  size_t written_ = 0;  // of what is in flight
  bool writing_ = false;
  std::chrono::steady_clock::time_point last_write_;
};

}  // namespace slip
