#include "checkpoint/json_visitor.h"

#include <boost/json/basic_parser_impl.hpp>
#include <set>
#include <type_traits>
#include <vector>

namespace slip {
namespace {

// Turns Boost's events, which deliver long strings in pieces, into ours.
class Handler {
 public:
  using string_view = boost::json::string_view;
  using error_code = boost::json::error_code;

  static constexpr size_t max_object_size = size_t(-1);
  static constexpr size_t max_array_size = size_t(-1);
  static constexpr size_t max_key_size = size_t(-1);
  static constexpr size_t max_string_size = size_t(-1);

  explicit Handler(JsonVisitor& visitor) : visitor_(&visitor) {}

  // What the visitor refused; ok if the parser itself failed.
  Status& status() { return status_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& code) { return pass(visitor_->begin_object(), code); }
  bool on_object_end(size_t, error_code& code) { return pass(visitor_->end_object(), code); }
  bool on_array_begin(error_code& code) { return pass(visitor_->begin_list(), code); }
  bool on_array_end(size_t, error_code& code) { return pass(visitor_->end_list(), code); }
  bool on_key_part(string_view part, size_t, error_code&) { return keep(part); }
  bool on_key(string_view part, size_t, error_code& code) {
    const bool ok = pass(visitor_->key(whole(part)), code);
    pieces_.clear();
    return ok;
  }
  bool on_string_part(string_view part, size_t, error_code&) { return keep(part); }
  bool on_string(string_view part, size_t, error_code& code) {
    const bool ok = pass(visitor_->scalar(whole(part)), code);
    pieces_.clear();
    return ok;
  }
  bool on_number_part(string_view, error_code&) { return true; }
  bool on_int64(int64_t value, string_view, error_code& code) { return scalar(value, code); }
  bool on_uint64(uint64_t value, string_view, error_code& code) { return scalar(value, code); }
  bool on_double(double value, string_view, error_code& code) { return scalar(value, code); }
  bool on_bool(bool value, error_code& code) { return scalar(value, code); }
  bool on_null(error_code& code) { return scalar(nullptr, code); }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

 private:
  bool scalar(const JsonScalar& value, error_code& code) {
    return pass(visitor_->scalar(value), code);
  }

  bool pass(Status status, error_code& code) {
    if (status.ok()) return true;
    status_ = std::move(status);
    code = boost::json::error::exception;  // any code stops the parser; status_ says why
    return false;
  }

  bool keep(string_view part) {
    pieces_.append(part.data(), part.size());
    return true;
  }

  std::string_view whole(string_view last) {
    if (pieces_.empty()) return {last.data(), last.size()};
    keep(last);
    return pieces_;
  }

  JsonVisitor* visitor_;
  Status status_;
  std::string pieces_;
};

class RepeatedKeyFinder : public JsonVisitor {
 public:
  Status begin_object() override {
    open_objects_.emplace_back();
    return {};
  }
  Status end_object() override {
    open_objects_.pop_back();
    return {};
  }
  Status begin_list() override { return {}; }
  Status end_list() override { return {}; }
  Status key(std::string_view name) override {
    if (!open_objects_.back().emplace(name).second)
      return error("the key ", quote_for_message(name), " appears twice in one object");
    return {};
  }
  Status scalar(const JsonScalar&) override { return {}; }

 private:
  std::vector<std::set<std::string>> open_objects_;
};

}  // namespace

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 200;
  std::string result;
  for (const char c : text.substr(0, kLongest)) result += uint8_t(c) < 32 || c == 127 ? '?' : c;
  return text.size() > kLongest ? result + "..." : result;
}

std::string quote_for_message(std::string_view text) { return '"' + printable(text) + '"'; }

std::string describe_json_scalar(const JsonScalar& value) {
  return std::visit(
      [](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, std::nullptr_t>)
          return "null";
        else if constexpr (std::is_same_v<T, bool>)
          return v ? "true" : "false";
        else if constexpr (std::is_same_v<T, std::string_view>)
          return quote_for_message(v);
        else
          return cat(v);
      },
      value);
}

Status visit_json(std::string_view text, const std::string& source, JsonVisitor& visitor) {
  boost::json::parse_options options;
  options.max_depth = 64;
  try {
    boost::json::basic_parser<Handler> parser(options, visitor);
    boost::json::error_code code;
    const size_t read = parser.write_some(false, text.data(), text.size(), code);
    if (!parser.handler().status().ok())
      return std::move(parser.handler().status()).failure().in(source);
    if (code) return error(source, ": not valid JSON at byte ", read, ": ", code.message());
    if (read < text.size()) return error(source, ": more text after the JSON, at byte ", read);
    return {};
  } catch (const std::exception& failure) {  // out of memory; the parser itself reports codes
    return error(source, ": cannot read JSON: ", failure.what());
  }
}

Status refuse_repeated_keys(std::string_view text, const std::string& source) {
  RepeatedKeyFinder finder;
  return visit_json(text, source, finder);
}

}  // namespace slip
