#include "server/openai_stream.h"

#include "server/openai_shapes.h"

namespace slip {

void OpenAiStream::begin() {
  reply_.begin(200, "text/event-stream");
  begun_ = true;
}

void OpenAiStream::complete(const AnswerUsage& usage) {
  std::string out;
  if (include_usage_)
    out = head_ + R"(],"usage":)" + dump_json(openai_usage(usage)) + R"(,"timings":)" + timings_ +
          "}\n\n";
  reply_.write(out + "data: [DONE]\n\n");
  reply_.end();
}

void OpenAiStream::fail(const ApiError& error) {
  if (!begun_) return send_openai_error(reply_, error);
  reply_.write("data: " + openai_error_body(error) + "\n\n");
  reply_.end();
}

}  // namespace slip
