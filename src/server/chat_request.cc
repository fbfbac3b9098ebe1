#include "server/chat_request.h"

namespace slip {

void set_effort(ChatRequest& request, const std::string& effort) {
  if (!request.template_flags.contains("reasoning_effort"))
    request.template_flags["reasoning_effort"] = effort;
  set_thinking(request, effort != "none" && effort != "minimal");
}

void set_thinking(ChatRequest& request, bool think) {
  if (!request.template_flags.contains("enable_thinking"))
    request.template_flags["enable_thinking"] = think;
}

}  // namespace slip
