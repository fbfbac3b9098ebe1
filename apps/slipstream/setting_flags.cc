#include "setting_flags.h"

#include <string_view>
#include <utility>

namespace slip {

std::string explain(const Error& error) {
  constexpr std::pair<std::string_view, const char*> kFlags[] = {
      {"context", "--ctx"},
      {"memory budget", "--memory"},
      {"drafter", "--drafter-model"},
      {"source of MTP tensors", "--from"},
  };
  if (!error.setting) return error.message;
  for (const auto& [setting, flag] : kFlags)
    if (setting == error.setting) return cat(error.message, "; ", flag, " sets the ", setting);
  return error.message;
}

}  // namespace slip
