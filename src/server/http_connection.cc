#include "server/http_connection.h"

#include <algorithm>
#include <charconv>
#include <random>

#include "base/text.h"

namespace slip {
namespace {

// How long what a client still sends is thrown away: closed at once, the connection would be reset
// and the reply lost with it.
constexpr double kLingerSeconds = 2;

// Written at once: a client that reads slowly, but reads, gets on with each of them.
constexpr size_t kPieceBytes = 256 << 10;

std::string hex(uint64_t value) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value, 16);
  return std::string(digits, end.ptr);
}

// The client's own, if it is harmless.
std::string request_id(const HttpRequest& request) {
  const auto plain = [](char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '_';
  };
  const auto given = request.headers.find("x-request-id");
  if (given != request.headers.end() && !given->second.empty() && given->second.size() <= 64 &&
      std::all_of(given->second.begin(), given->second.end(), plain))
    return given->second;
  static thread_local std::mt19937_64 random{uint64_t(std::random_device()()) << 32 |
                                             std::random_device()()};
  return "req-" + hex(random() | uint64_t(1) << 63);
}

// A value from elsewhere must not begin a new header.
std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char byte) { return byte == '\r' || byte == '\n'; }, ' ');
  return text;
}

}  // namespace

HttpConnection::HttpConnection(Shared& shared, std::shared_ptr<HttpTransport> transport,
                               std::string client)
    : shared_(shared),
      transport_(std::move(transport)),
      client_(std::move(client)),
      deadline_(shared.io),
      ping_(shared.io) {}

void HttpConnection::start() {
  set_deadline(shared_.options.head_seconds);
  transport_->handshake([self = shared_from_this()](bool ok) {
    if (!ok) return self->close();
    self->read_more();
  });
}

void HttpConnection::start_refusing() {
  set_deadline(shared_.options.head_seconds);
  transport_->handshake([self = shared_from_this()](bool ok) {
    if (!ok) return self->close();
    self->answer_at_once({}, error_answer("", unavailable("too many connections")), true);
    self->read_more();
  });
}

void HttpConnection::finish() {
  last_request_ = true;
  if (state_ == State::reading) close();
}

void HttpConnection::close() {
  if (state_ == State::closed) return;
  if (state_ == State::answering) tell_closed();
  state_ = State::closed;
  deadline_.cancel();
  ping_.cancel();
  transport_->close();
  charge_ = nullptr;
  shared_.on_gone(this);
}

void HttpConnection::tell_closed() {
  if (phase_ == Phase::complete) return;
  phase_ = Phase::complete;
  interrupted_ = true;
  record_->set_client_left();
  if (const auto callback = std::exchange(on_close_, nullptr)) callback();
}

// Reading goes on while a request is answered: that is how a client is noticed that leaves. What it
// sends meanwhile waits in the buffer, up to a limit.
void HttpConnection::read_more() {
  const bool full =
      state_ == State::answering && buffer_.size() > shared_.options.limits.header_bytes;
  if (reading_ || input_ended_ || full || state_ == State::closed) return;
  reading_ = true;
  transport_->read(
      chunk_.data(), chunk_.size(),
      [self = shared_from_this()](bool ok, size_t bytes) { self->on_read(ok, bytes); });
}

void HttpConnection::on_read(bool ok, size_t bytes) {
  reading_ = false;
  if (state_ == State::closed) return;
  if (!ok) return on_end_of_input();
  if (state_ != State::lingering) {
    if (state_ == State::reading && buffer_.empty() && !parser_)
      set_deadline(shared_.options.head_seconds);
    buffer_.append(chunk_.data(), bytes);
    advance();
  }
  read_more();
}

// A reply that is complete is still written to the end: the client may have closed only its half.
void HttpConnection::on_end_of_input() {
  input_ended_ = true;
  if (state_ != State::answering || phase_ != Phase::complete) close();
}

void HttpConnection::advance() {
  while (state_ == State::reading && !buffer_.empty()) {
    if (!parser_) parser_ = std::make_unique<HttpParser>(shared_.options.limits);
    const HttpParser::Stage before = parser_->stage();
    const size_t used = parser_->feed(buffer_);
    buffer_.erase(0, used);
    if (before == HttpParser::Stage::body && !add_body_bytes(used))
      return refuse_request(unavailable("too many requests are being read"));
    if (parser_->stage() == HttpParser::Stage::body && before == HttpParser::Stage::head) admit();
    if (state_ != State::reading) return;
    // A request without a body is complete with its head.
    if (parser_->stage() == HttpParser::Stage::body && !parser_->has_body()) parser_->feed({});
    if (parser_->stage() == HttpParser::Stage::refused) {
      const HttpParser::Refusal& refusal = parser_->refusal();
      return refuse_request({.status = refusal.status, .message = refusal.message});
    }
    if (parser_->stage() == HttpParser::Stage::complete) {
      dispatch();
    } else if (parser_->stage() == before) {
      return;  // more bytes are needed
    }
  }
}

void HttpConnection::refuse_request(const ApiError& error) {
  HttpRequest request = std::move(parser_->request());
  HttpAnswer answer = error_answer(request.path, error);
  answer_at_once(std::move(request), std::move(answer), true);
}

void HttpConnection::admit() {
  HttpRequest& request = parser_->request();
  Admission admission;
  if (shared_.hooks.check) admission = shared_.hooks.check(request);
  extra_headers_ = std::move(admission.headers);
  if (admission.answer)
    return answer_at_once(std::move(request), *std::move(admission.answer), parser_->has_body());
  if (!parser_->has_body()) return;
  set_deadline(shared_.options.body_seconds);
  if (parser_->expects_continue()) queue_bytes("HTTP/1.1 100 Continue\r\n\r\n");
}

// Bytes that have come count, not those that were announced: a few clients that announce much and
// send nothing would keep everybody else out.
bool HttpConnection::add_body_bytes(size_t bytes) {
  if (*shared_.body_bytes + bytes > shared_.options.bodies_bytes) return false;
  if (!charge_) charge_ = std::make_shared<BodyCharge>(shared_.body_bytes);
  charge_->add(bytes);
  return true;
}

void HttpConnection::dispatch() {
  HttpRequest request = std::move(parser_->request());
  request.id = request_id(request);
  // A client that leaves takes its connection along, but not a body that waits for its handler.
  request.charge = std::move(charge_);
  std::shared_ptr<Reply> reply = begin_exchange(request);
  shared_.hooks.handler(std::move(request), std::move(reply));
}

std::shared_ptr<Reply> HttpConnection::begin_exchange(const HttpRequest& request) {
  state_ = State::answering;
  phase_ = Phase::waiting;
  deadline_.cancel();
  interrupted_ = false;
  on_close_ = nullptr;
  head_only_ = request.method == "HEAD";
  path_ = request.path;
  chunked_ = parser_ && parser_->takes_chunks();
  last_request_ |= !parser_ || !parser_->keep_alive();
  parser_ = nullptr;
  extra_headers_.emplace_back("x-request-id", request.id);
  record_ = std::make_shared<ReplyRecord>(request, client_);
  return std::make_shared<Reply>(Reply::Way{shared_.queue, weak_from_this(), ++exchange_}, record_,
                                 shared_.hooks.log);
}

void HttpConnection::answer_at_once(HttpRequest request, HttpAnswer answer, bool last) {
  request.id = request_id(request);
  last_request_ |= last;
  charge_ = nullptr;
  send(*begin_exchange(request), std::move(answer));
}

void HttpConnection::reply_on_close(uint64_t exchange, std::function<void()> callback) {
  if (exchange == exchange_ && interrupted_) return callback();
  if (is_current(exchange)) on_close_ = std::move(callback);
}

std::string HttpConnection::head_bytes(const ReplyHead& head, std::string_view framing) const {
  std::string text = cat("HTTP/1.1 ", head.status, " ", reason_phrase(head.status), "\r\n");
  if (!head.content_type.empty()) text += cat("Content-Type: ", head.content_type, "\r\n");
  for (const HttpHeaders* headers : {&head.headers, &extra_headers_})
    for (const auto& [name, value] : *headers) text += cat(name, ": ", one_line(value), "\r\n");
  text += "X-Content-Type-Options: nosniff\r\n";
  if (last_request_) text += "Connection: close\r\n";
  return cat(text, framing, "\r\n");
}

void HttpConnection::reply_whole(uint64_t exchange, ReplyHead head, std::string body) {
  if (!is_current(exchange) || phase_ != Phase::waiting) return;
  constexpr int kNoContent = 204;
  const bool bare = head.status == kNoContent;
  const std::string bytes =
      head_bytes(head, bare ? "" : cat("Content-Length: ", body.size(), "\r\n"));
  if (head_only_ || bare) body.clear();
  phase_ = Phase::complete;
  queue_bytes(std::move(body.insert(0, bytes)));
}

void HttpConnection::reply_begin(uint64_t exchange, ReplyHead head) {
  if (!is_current(exchange) || phase_ != Phase::waiting) return;
  phase_ = Phase::streaming;
  if (!chunked_) last_request_ = true;  // only the end of the connection ends such a reply
  const bool events = head.content_type.starts_with("text/event-stream");
  if (events) {
    head.headers.emplace_back("Cache-Control", "no-cache");
    head.headers.emplace_back("X-Accel-Buffering", "no");  // nginx would hold events back
  }
  queue_bytes(head_bytes(head, chunked_ ? "Transfer-Encoding: chunked\r\n" : ""));
  if (events) start_pings();
}

void HttpConnection::reply_write(uint64_t exchange, std::string piece) {
  if (!is_current(exchange) || phase_ != Phase::streaming || piece.empty() || head_only_) return;
  if (pending_.size() > shared_.options.queued_bytes) return close();
  queue_piece(piece);
}

void HttpConnection::reply_end(uint64_t exchange) {
  if (!is_current(exchange) || phase_ != Phase::streaming) return;
  phase_ = Phase::complete;
  ping_.cancel();
  if (chunked_ && !head_only_) queue_bytes("0\r\n\r\n");
  flush();
}

void HttpConnection::reply_dropped(uint64_t exchange) {
  if (!is_current(exchange)) return;
  if (phase_ == Phase::streaming) return close();  // cut off, so that nobody takes it for whole
  const ApiError error = server_error("the request was dropped");
  record_->set_status(error.status);
  HttpAnswer answer = error_answer(path_, error);
  reply_whole(exchange, {answer.status, answer.content_type, answer.headers}, answer.body);
}

void HttpConnection::queue_piece(std::string_view piece) {
  if (!chunked_) return queue_bytes(std::string(piece));
  queue_bytes(cat(hex(piece.size()), "\r\n", piece, "\r\n"));
}

void HttpConnection::queue_bytes(std::string bytes) {
  if (pending_.empty())
    pending_ = std::move(bytes);  // a whole reply may be long
  else
    pending_ += bytes;
  last_write_ = std::chrono::steady_clock::now();
  flush();
}

void HttpConnection::flush() {
  if (writing_ || state_ == State::closed) return;
  if (written_ == in_flight_.size()) {
    if (pending_.empty()) return on_reply_out();
    written_ = 0;
    in_flight_.clear();
    in_flight_.swap(pending_);
  }
  writing_ = true;
  if (state_ == State::answering) set_deadline(shared_.options.write_seconds);
  const std::string_view piece = std::string_view(in_flight_).substr(written_, kPieceBytes);
  transport_->write(
      piece, [self = shared_from_this()](bool ok, size_t bytes) { self->on_written(ok, bytes); });
}

void HttpConnection::on_written(bool ok, size_t bytes) {
  writing_ = false;
  written_ += bytes;
  if (state_ == State::closed) return;
  if (!ok) return close();
  if (state_ == State::answering) deadline_.cancel();
  flush();
}

void HttpConnection::on_reply_out() {
  if (state_ != State::answering || phase_ != Phase::complete) return;
  extra_headers_.clear();
  if (input_ended_) return close();
  if (last_request_) return linger();
  state_ = State::reading;
  set_deadline(buffer_.empty() ? shared_.options.idle_seconds : shared_.options.head_seconds);
  advance();
  read_more();
}

void HttpConnection::linger() {
  state_ = State::lingering;
  buffer_.clear();
  transport_->end_writing();
  set_deadline(kLingerSeconds);
  read_more();
}

void HttpConnection::set_deadline(double seconds) {
  deadline_.expires_after(std::chrono::microseconds(int64_t(seconds * 1e6)));
  deadline_.async_wait([self = shared_from_this()](boost::system::error_code code) {
    // A wait that was replaced just as it ended is not meant.
    if (!code && self->deadline_.expiry() <= std::chrono::steady_clock::now()) self->on_deadline();
  });
}

void HttpConnection::on_deadline() {
  if (state_ == State::closed) return;
  const bool has_begun = parser_ || !buffer_.empty();
  if (state_ != State::reading || !has_begun) return close();
  const ApiError error{.status = 408, .message = "the request took too long to arrive"};
  HttpRequest request = parser_ ? std::move(parser_->request()) : HttpRequest{};
  HttpAnswer answer = error_answer(request.path, error);
  answer_at_once(std::move(request), std::move(answer), true);
}

void HttpConnection::start_pings() {
  const auto interval = std::chrono::microseconds(int64_t(shared_.options.ping_seconds * 1e6));
  ping_.expires_at(last_write_ + interval);
  ping_.async_wait([self = shared_from_this(), interval](boost::system::error_code code) {
    if (code || self->state_ != State::answering || self->phase_ != Phase::streaming) return;
    if (std::chrono::steady_clock::now() >= self->last_write_ + interval && !self->head_only_)
      self->queue_piece(": ping\n\n");
    self->start_pings();
  });
}

}  // namespace slip
