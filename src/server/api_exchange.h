// One request of a client on its way through the engine: choices are submitted, what is heard about
// them is parsed and written, and all of them end when the client leaves.
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
  // With the choice before it: then it is submitted when that has its first token.
  bool shares_prompt = false;
};

// Returns when the first choices are submitted; the exchange lives on until the last has ended.
void start_exchange(Answerer& answerer, std::shared_ptr<HttpReply> reply,
                    std::unique_ptr<AnswerWriter> writer, std::vector<PlannedChoice> choices);

}  // namespace slip
