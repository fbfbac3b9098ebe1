#include "slipstream/common/setting_flags.h"

#include <string_view>
#include <utility>

namespace slip {

std::string explain(const Error& error) {
  constexpr std::pair<std::string_view, const char*> kAdvice[] = {
      {"context", "--ctx sets the context"},
      {"memory budget", "--memory sets the memory budget"},
      {"drafter", "--drafter-model sets the drafter"},
      {"source of MTP tensors", "--from sets the source of MTP tensors"},
      {"hub", "check the network, https_proxy, and the hub's address (--endpoint, HF_ENDPOINT)"},
  };
  if (!error.setting) return error.message;
  for (const auto& [setting, advice] : kAdvice)
    if (setting == error.setting) return cat(error.message, "; ", advice);
  return error.message;
}

Error advise_on_context(Error failure, const char* advice) {
  if (!failure.setting || std::string_view(failure.setting) != "context") return failure;
  return error(failure.message, advice ? "; " : "", advice ? advice : "");
}

}  // namespace slip
