#include "hub/client_connection.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/ascii.h"

namespace slip {
namespace {

constexpr size_t kLongestHead = 64 << 10;
constexpr size_t kLongestLine = 1 << 10;  // of a chunk's size

Error ended_early() { return error("the connection ended in the middle of a reply"); }

}  // namespace

Status ClientConnection::read_more() {
  char bytes[16 << 10];
  SLIP_TRY(const size_t count, stream_->read(bytes));
  if (count == 0) return ended_early();
  buffer_.append(bytes, count);
  return {};
}

Result<HttpReplyHead> ClientConnection::exchange(const std::string& request) {
  check(reusable(), "a request while another's reply is unread");
  reusable_ = false;  // until the head says otherwise
  SLIP_TRY_STATUS(stream_->write(request));
  for (;;) {
    size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (buffer_.size() > kLongestHead) return error("the head of a reply does not end");
      SLIP_TRY_STATUS(read_more());
    }
    SLIP_TRY(HttpReplyHead head, HttpReplyHead::parse(std::string_view(buffer_).substr(0, end)));
    buffer_.erase(0, end + 4);
    if (head.status < 200) continue;  // a note on the way, as 100 or 103
    choose_framing(head);
    return head;
  }
}

void ClientConnection::choose_framing(const HttpReplyHead& head) {
  reusable_ = head.minor_version >= 1 && !head.has_header_word("Connection", "close");
  if (head.status == 204 || head.status == 304) {
    framing_ = Framing::none;
  } else if (head.has_header_word("Transfer-Encoding", "chunked")) {
    framing_ = Framing::chunks;
    left_ = 0;
  } else if (const auto length = parse_decimal(head.header("Content-Length"))) {
    framing_ = *length > 0 ? Framing::length : Framing::none;
    left_ = *length;
  } else {
    framing_ = Framing::until_close;
    reusable_ = false;
  }
}

Result<size_t> ClientConnection::take(std::span<char> into) {
  if (buffer_.empty()) return stream_->read(into);
  const size_t count = std::min(buffer_.size(), into.size());
  std::memcpy(into.data(), buffer_.data(), count);
  buffer_.erase(0, count);
  return count;
}

Result<std::string> ClientConnection::read_line() {
  size_t end;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (buffer_.size() > kLongestLine) return error("a reply in broken chunks");
    SLIP_TRY_STATUS(read_more());
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

Status ClientConnection::begin_chunk() {
  SLIP_TRY(const std::string line, read_line());
  const char* end = line.data() + std::min(line.find(';'), line.size());
  const auto [at, code] = std::from_chars(line.data(), end, left_, 16);
  if (code != std::errc() || at == line.data()) return error("a reply in broken chunks");
  if (left_ > 0) return {};
  for (;;) {  // trailers
    SLIP_TRY(const std::string trailer, read_line());
    if (trailer.empty()) break;
  }
  framing_ = Framing::none;
  return {};
}

Result<size_t> ClientConnection::read(std::span<char> into) {
  if (framing_ == Framing::chunks && left_ == 0) SLIP_TRY_STATUS(begin_chunk());
  if (framing_ == Framing::none) return size_t(0);
  if (framing_ != Framing::until_close) into = into.first(std::min<uint64_t>(into.size(), left_));
  SLIP_TRY(const size_t count, take(into));
  if (framing_ == Framing::until_close) {
    if (count == 0) framing_ = Framing::none;
    return count;
  }
  if (count == 0) return ended_early();
  left_ -= count;
  if (left_ == 0 && framing_ == Framing::length) framing_ = Framing::none;
  if (left_ == 0 && framing_ == Framing::chunks) {
    SLIP_TRY(const std::string blank, read_line());
    if (!blank.empty()) return error("a reply in broken chunks");
  }
  return count;
}

}  // namespace slip
