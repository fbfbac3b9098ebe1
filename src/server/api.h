// The endpoints that clients of OpenAI, Anthropic, vLLM and llama.cpp know, as routes for the HTTP
// server. Nothing here knows sockets or tensors: requests become engine requests, and what is heard
// about them becomes replies.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generation_config.h"
#include "server/api_answerer.h"
#include "server/http.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace slip {

// A model as clients see it. What it points to must outlive the Api.
struct ServedModel {
  std::vector<std::string> names;  // its own first, then aliases; at least one
  const Tokenizer* tokenizer = nullptr;
  const ChatTemplate* chat_template = nullptr;  // null: only raw completions
  std::string why_no_template;                  // then; clients are told
  GenerationDefaults defaults;
  int64_t context = 0;  // shown in lists; requests are held against Answerer::context()
  int64_t created = 0;  // Unix time
};

// The field that thoughts are sent in.
enum class ReasoningField : uint8_t {
  reasoning_content,
  reasoning,
  both,
  none,  // in the content, between <think> and </think>
};

struct ApiOptions {
  ReasoningField reasoning_field = ReasoningField::reasoning_content;
  bool strict_template = false;  // messages reach the template as they came: no merged system turns
  std::string version;           // of the program
  std::function<void(std::string_view)> log;  // notes for the operator, never text of a prompt
};

struct ApiRoute {
  std::string method;
  std::string path;  // "/v1/models"; "/v1/models/*" stands for every path that goes on behind it
  HttpHandler handler;
  bool quick = false;  // renders and tokenises nothing
};

class ApiContext;

class Api {
 public:
  Api(ServedModel model, ApiOptions options);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // Until this is called, and after it is called with null, requests for answers get 503; lists of
  // models are there from the start. `answerer` must outlive its last answer.
  void attach(Answerer* answerer);

  // Handlers may be called on any thread and return without waiting for the answer. They render and
  // tokenise the prompt before they do. They must not outlive the Api.
  std::vector<ApiRoute> routes();

 private:
  std::unique_ptr<ApiContext> context_;
};

}  // namespace slip
