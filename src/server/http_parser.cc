#include "server/http_parser.h"

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/ascii.h"
#include "base/text.h"

namespace slip {

namespace http = boost::beast::http;

struct HttpParser::Beast {
  http::request_parser<http::string_body> parser;
};

namespace {

std::string_view view_of(boost::beast::string_view text) { return {text.data(), text.size()}; }

// The last chunk of a body, "0\r\n\r\n". Beast 1.74 ends the program if it meets one byte less of
// it after three; of a body in chunks that has not ended, so many bytes are always still to come.
constexpr size_t kLastChunkBytes = 5;

// Fields of which two could be read differently by us and by a proxy before us.
bool must_be_single(std::string_view name) {
  return name == "host" || name == "content-length" || name == "transfer-encoding" ||
         name == "authorization" || name == "content-type" || name == "x-api-key" ||
         name == "origin";
}

}  // namespace

HttpParser::HttpParser(const HttpLimits& limits)
    : limits_(limits), beast_(std::make_unique<Beast>()) {
  beast_->parser.header_limit(uint32_t(limits.header_bytes));
  beast_->parser.body_limit(limits.body_bytes);
  beast_->parser.eager(false);
}
HttpParser::~HttpParser() = default;

bool HttpParser::has_body() const { return !beast_->parser.is_done(); }

void HttpParser::refuse(int status, std::string message) {
  stage_ = Stage::refused;
  keep_alive_ = false;
  refusal_ = {status, std::move(message)};
}

size_t HttpParser::feed_beast(std::string_view bytes) {
  boost::beast::error_code code;
  const size_t used =
      beast_->parser.put(boost::asio::const_buffer(bytes.data(), bytes.size()), code);
  if (!code || code == http::error::need_more) return used;
  if (code == http::error::header_limit)
    refuse(431, cat("the headers are longer than ", limits_.header_bytes, " bytes"));
  else if (code == http::error::body_limit)
    refuse(413, cat("the body is longer than ", limits_.body_bytes, " bytes"));
  else
    refuse(400, cat("this is no HTTP/1.1 request: ", code.message()));
  return used;
}

size_t HttpParser::feed(std::string_view bytes) {
  if (stage_ == Stage::head) {
    const size_t used = feed_beast(bytes);
    head_ += bytes.substr(0, used);
    if (stage_ == Stage::head && beast_->parser.is_header_done()) {
      stage_ = Stage::body;
      beast_->parser.eager(true);  // from here on as far as the bytes go
      read_head();
    }
    return used;
  }
  if (stage_ != Stage::body) return 0;
  const bool waits = beast_->parser.chunked() && bytes.size() < kLastChunkBytes;
  const size_t used = beast_->parser.is_done() || waits ? 0 : feed_beast(bytes);
  if (stage_ == Stage::body && beast_->parser.is_done()) {
    request_.body = std::move(beast_->parser.get().body());
    stage_ = Stage::complete;
  } else if (stage_ == Stage::body && bytes.size() - used > limits_.header_bytes) {
    refuse(400, "the body has a chunk header without an end");
  }
  return used;
}

void HttpParser::read_head() {
  // Beast joins the lines; a proxy may take the second one for another header, or drop it.
  if (head_.find("\r\n ") != std::string::npos || head_.find("\r\n\t") != std::string::npos)
    return refuse(400, "a header goes on in the next line");
  head_ = {};
  const auto& message = beast_->parser.get();
  for (const auto& field : message.base()) {
    const std::string name = lower_ascii(view_of(field.name_string()));
    const auto [place, is_new] = request_.headers.try_emplace(name, view_of(field.value()));
    if (is_new) continue;
    if (must_be_single(name)) return refuse(400, cat("there are two ", name, " headers"));
    place->second += cat(", ", view_of(field.value()));
  }
  request_.method = view_of(message.method_string());
  const std::string_view target = view_of(message.target());
  const size_t question = target.find('?');
  request_.path = target.substr(0, question);
  if (question != std::string_view::npos) request_.query = target.substr(question + 1);
  keep_alive_ = beast_->parser.keep_alive();

  const auto value_of = [this](const char* name) {
    const auto found = request_.headers.find(name);
    return found == request_.headers.end() ? "" : lower_ascii(found->second);
  };
  const bool old = message.version() < 11;
  takes_chunks_ = !old;
  if (!request_.path.starts_with('/')) return refuse(400, "the request line has no path");
  if (!old && value_of("host").empty()) return refuse(400, "the Host header is missing");
  const std::string transfer = value_of("transfer-encoding");
  if (!transfer.empty() && (transfer != "chunked" || old))
    return refuse(400, "of transfer encodings only chunked is understood, in HTTP/1.1");
  // Beast takes lists of equal lengths.
  if (value_of("content-length").find_first_not_of("0123456789") != std::string::npos)
    return refuse(400, "the Content-Length is not one number");
  const std::string encoding = value_of("content-encoding");
  if (!encoding.empty() && encoding != "identity")
    return refuse(415, cat("bodies are taken as they are, not as ", encoding));
  expects_continue_ = !old && value_of("expect") == "100-continue";
}

}  // namespace slip
