// Lines on standard error, for people or for programs. Never the text of a prompt or an answer.
#pragma once

#include <string>
#include <string_view>

#include "base/json.h"
#include "server/http_server.h"

namespace slip {

// All methods may be called from any thread.
class ServeLog {
 public:
  enum class Format { text, json };
  explicit ServeLog(Format format) : format_(format) {}

  void request(const HttpRecord& record) const;
  // `event` is one word; `details` go behind the message in JSON only.
  void note(std::string_view event, const std::string& message, JsonObject details = {}) const;

  // The line of a request, without its time.
  static std::string text_of(const HttpRecord& record);
  static JsonObject json_of(const HttpRecord& record);

 private:
  void print(std::string line) const;

  Format format_;
};

}  // namespace slip
