// The only reader of environment variables.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "hub/hub_client.h"

namespace slip {

// The Hugging Face cache folders that models are looked for in, in this order.
std::vector<std::filesystem::path> hugging_face_caches();

// The hub to download from, the token for it and the proxies on the way.
HubSettings hub_settings();
// Where downloads go: the first of the caches.
Result<std::filesystem::path> hub_folder();
// HF_HUB_OFFLINE: nothing may be downloaded.
bool is_offline();

// What the environment says about the person and the terminal.
struct UserEnvironment {
  bool no_color = false;            // NO_COLOR is set
  std::string terminal;             // TERM; empty or "dumb": it understands no escape sequences
  std::filesystem::path state_dir;  // where slipstream may keep its history; may be empty
  std::string api_key;              // SLIPSTREAM_API_KEY: what clients of serve must present
};
UserEnvironment user_environment();

// SLIPSTREAM_MINNOW: where the default model lies, if it says so.
std::filesystem::path minnow_folder_override();

}  // namespace slip
