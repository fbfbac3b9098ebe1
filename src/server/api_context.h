// What all endpoints share.
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "server/api.h"
#include "server/api_constraint.h"
#include "server/chat_prompt.h"

namespace slip {

class ApiContext {
 public:
  ApiContext(ServedModel served, ApiOptions choices);

  const ServedModel model;
  const ApiOptions options;
  std::atomic<Answerer*> answerer{nullptr};
  const PromptWriter prompts;
  const ConstraintMaker constraints;

  int64_t vocabulary() const { return model.tokenizer->vocab_size(); }
  // Of the engine, or what the model promises while there is none.
  int64_t context() const;

  // The name to reply with; 404 for names that are not served. No name means the only model.
  ApiResult<std::string> served_name(const std::string& asked) const;

  // Tells the operator, once per name, about members of requests that nobody understood.
  void note_unknown(const std::string& endpoint, const std::vector<std::string>& names);

 private:
  std::mutex mutex_;
  std::set<std::string> noted_;
};

// The JSON object in a body.
ApiResult<JsonObject> read_body(const HttpRequest& request);

}  // namespace slip
