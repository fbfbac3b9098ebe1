#include "slipstream/common/environment.h"

#include <cstdlib>

#include "base/ascii.h"
#include "base/files.h"
#include "version.h"

namespace slip {
namespace {

std::filesystem::path path_from(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? std::filesystem::path(value) : std::filesystem::path();
}

std::string text_from(const char* variable) {
  const char* value = std::getenv(variable);
  return value ? value : "";
}

// The first of them that is set.
std::string text_from_any(std::initializer_list<const char*> variables) {
  for (const char* variable : variables)
    if (std::string text = text_from(variable); !text.empty()) return text;
  return "";
}

// Where hf auth login leaves it.
std::string hub_token() {
  if (std::string token = text_from_any({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}); !token.empty())
    return std::string(trimmed(token));
  std::vector<std::filesystem::path> places{path_from("HF_TOKEN_PATH")};
  if (const auto home = path_from("HF_HOME"); !home.empty()) places.push_back(home / "token");
  if (const auto cache = path_from("XDG_CACHE_HOME"); !cache.empty())
    places.push_back(cache / "huggingface" / "token");
  if (const auto home = path_from("HOME"); !home.empty())
    places.push_back(home / ".cache" / "huggingface" / "token");
  for (const auto& place : places) {
    if (place.empty()) continue;
    if (const Result<std::string> text = read_text_file(place, 4096); text.ok())
      return std::string(trimmed(text.value()));
  }
  return "";
}

std::vector<std::string> list_from(const std::string& text) {
  std::vector<std::string> list;
  for (const std::string_view part : split(text, ','))
    if (!trimmed(part).empty()) list.emplace_back(trimmed(part));
  return list;
}

}  // namespace

std::vector<std::filesystem::path> hugging_face_caches() {
  std::vector<std::filesystem::path> folders;
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME"})
    if (const auto folder = path_from(variable); !folder.empty()) folders.push_back(folder);
  if (const auto cache = path_from("XDG_CACHE_HOME"); !cache.empty())
    folders.push_back(cache / "huggingface");
  if (const auto home = path_from("HOME"); !home.empty())
    folders.push_back(home / ".cache" / "huggingface");
  return folders;
}

HubSettings hub_settings() {
  HubSettings hub;
  if (std::string endpoint = text_from("HF_ENDPOINT"); !endpoint.empty()) hub.endpoint = endpoint;
  hub.token = hub_token();
  hub.user_agent = cat("slipstream/", kVersion);
  hub.authorities = text_from("SSL_CERT_FILE");
  hub.proxies.for_https = text_from_any({"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"});
  // Not HTTP_PROXY: in a CGI program that is a header of the request.
  hub.proxies.for_http = text_from_any({"http_proxy", "all_proxy", "ALL_PROXY"});
  hub.proxies.except = list_from(text_from_any({"no_proxy", "NO_PROXY"}));
  return hub;
}

Result<std::filesystem::path> hub_folder() {
  for (const char* variable : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const auto folder = path_from(variable); !folder.empty()) return folder;
  const std::vector<std::filesystem::path> caches = hugging_face_caches();
  if (caches.empty()) return error("there is no place for downloads; set HF_HOME to a folder");
  return caches.front() / "hub";
}

bool is_offline() {
  const std::string value = text_from("HF_HUB_OFFLINE");
  return !value.empty() && value != "0";
}

UserEnvironment user_environment() {
  UserEnvironment user;
  user.no_color = !text_from("NO_COLOR").empty();
  user.terminal = text_from("TERM");
  user.api_key = text_from("SLIPSTREAM_API_KEY");
  std::filesystem::path state = path_from("XDG_STATE_HOME");
  if (const auto home = path_from("HOME"); state.empty() && !home.empty())
    state = home / ".local" / "state";
  if (!state.empty()) user.state_dir = state / "slipstream";
  return user;
}

std::filesystem::path minnow_folder_override() { return path_from("SLIPSTREAM_MINNOW"); }

}  // namespace slip
