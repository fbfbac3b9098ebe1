// How streams of OpenAI's chats and completions begin and end.
#pragma once

#include <string>

#include "server/api_error.h"
#include "server/api_writer.h"
#include "server/http.h"

namespace slip {

class OpenAiStream : public AnswerWriter {
 public:
  void begin() override;
  void complete(const AnswerUsage& usage) override;
  void fail(const ApiError& error) override;

 protected:
  OpenAiStream(HttpReply& reply, bool include_usage)
      : reply_(reply), include_usage_(include_usage) {}

  HttpReply& reply_;
  std::string head_;     // of every chunk, up to its list of choices
  std::string timings_;  // of the first choice, when it is finished

 private:
  const bool include_usage_;
  bool begun_ = false;
};

}  // namespace slip
