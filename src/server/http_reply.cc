#include "server/http_reply.h"

namespace slip {

constexpr int kClientLeft = 499;  // as nginx logs it

ReplyRecord::ReplyRecord(const HttpRequest& request, std::string client) {
  record_.method = request.method;
  record_.path = request.path;
  record_.id = request.id;
  record_.client = std::move(client);
}
void ReplyRecord::set_status(int status) {
  const std::lock_guard lock(mutex_);
  record_.status = status;
}
void ReplyRecord::set_client_left() {
  const std::lock_guard lock(mutex_);
  client_left_ = true;
}
bool ReplyRecord::client_left() const {
  const std::lock_guard lock(mutex_);
  return client_left_;
}
void ReplyRecord::add(const TokenUsage& usage) {
  const std::lock_guard lock(mutex_);
  record_.usage.prompt += usage.prompt;
  record_.usage.cached += usage.cached;
  record_.usage.generated += usage.generated;
  record_.usage.decode_seconds += usage.decode_seconds;
}
HttpRecord ReplyRecord::take() {
  const std::lock_guard lock(mutex_);
  record_.seconds = clock_.seconds();
  if (client_left_) record_.status = kClientLeft;
  return std::move(record_);
}

Reply::Reply(Way way, std::shared_ptr<ReplyRecord> record, HttpLog log)
    : way_(std::move(way)), record_(std::move(record)), log_(std::move(log)) {}

Reply::~Reply() {
  post([](ReplyTarget& target, uint64_t exchange) { target.reply_dropped(exchange); });
  if (log_) log_(record_->take());
}

template <class Action>
void Reply::post(Action action) {
  way_.queue->post([connection = way_.connection, exchange = way_.exchange,
                    action = std::move(action)]() mutable {
    if (const auto target = connection.lock()) action(*target, exchange);
  });
}

bool Reply::client_left() const { return record_->client_left(); }

void Reply::on_close(std::function<void()> callback) {
  way_.queue->post([connection = way_.connection, exchange = way_.exchange,
                    callback = std::move(callback)]() mutable {
    if (const auto target = connection.lock())
      target->reply_on_close(exchange, std::move(callback));
    else
      callback();
  });
}

void Reply::send(int status, std::string_view content_type, std::string body,
                 const HttpHeaders& headers) {
  record_->set_status(status);
  post([head = ReplyHead{status, std::string(content_type), headers}, body = std::move(body)](
           ReplyTarget& target, uint64_t exchange) mutable {
    target.reply_whole(exchange, std::move(head), std::move(body));
  });
}

void Reply::begin(int status, std::string_view content_type, const HttpHeaders& headers) {
  record_->set_status(status);
  post([head = ReplyHead{status, std::string(content_type), headers}](ReplyTarget& target,
                                                                      uint64_t exchange) mutable {
    target.reply_begin(exchange, std::move(head));
  });
}

void Reply::write(std::string piece) {
  post([piece = std::move(piece)](ReplyTarget& target, uint64_t exchange) mutable {
    target.reply_write(exchange, std::move(piece));
  });
}

void Reply::end() {
  post([](ReplyTarget& target, uint64_t exchange) { target.reply_end(exchange); });
}

void Reply::add_usage(const TokenUsage& usage) { record_->add(usage); }

}  // namespace slip
