// One request of a client on its way through the engine: its choices are submitted, their tokens
// are parsed and handed to the writer of the reply, and all choices are cancelled if the client
// leaves. Stop strings of parsed answers are looked for in their content: thoughts and calls of
// tools are full of line breaks and the like.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/request.h"
#include "server/api_answerer.h"
#include "server/api_writer.h"
#include "server/http.h"
#include "text/output_parser.h"

namespace slip {

struct PlannedChoice {
  Request request;
  // Tells thoughts, content and tool calls apart; without it everything is content.
  std::optional<OutputParser> parser;
  // It answers the same prompt as the choice before it. It is then submitted when the first choice
  // of that prompt has its first token, and finds the prompt computed.
  bool shares_prompt = false;
};

// Returns when the first choice of each prompt is submitted. The exchange keeps itself alive until
// the last choice has ended.
void start_exchange(Answerer& answerer, std::shared_ptr<HttpReply> reply,
                    std::unique_ptr<AnswerWriter> writer, std::vector<PlannedChoice> choices);

}  // namespace slip
