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
#include "server/prompt_limit.h"

namespace slip {

class ApiContext {
 public:
  ApiContext(ServedModel served, ApiOptions choices);

  const ServedModel model;
  const ApiOptions options;
  std::atomic<Answerer*> answerer{nullptr};
  const PromptLimit limit;
  const PromptWriter prompts;
  const ConstraintMaker constraints;

  int64_t vocabulary() const { return model.tokenizer->vocab_size(); }
  // How many tokens a prompt and its answer may have: as many as the engine has room for or, while
  // the model is being loaded, as many as the model was made for.
  int64_t context() const;

  // The name of the model that is sent back in replies to a request for `asked`, which is a name or
  // alias of the model; an empty one means the only model. 404 for other names.
  ApiResult<std::string> served_name(const std::string& asked) const;

  // Logs, once per endpoint and name, that requests have fields of which nobody made use.
  void note_unknown(const std::string& endpoint, const std::vector<std::string>& names);

 private:
  std::mutex mutex_;
  std::set<std::string> noted_;
};

// The JSON object in a body.
ApiResult<JsonObject> read_body(const HttpRequest& request);

}  // namespace slip
