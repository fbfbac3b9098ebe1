// A conversation: what templates render and what /save writes.
#pragma once

#include <filesystem>
#include <string>

#include "base/json.h"

namespace slip {

class Conversation {
 public:
  void set_system(std::string text) { system_ = std::move(text); }
  const std::string& system() const { return system_; }

  void add_user(const std::string& text);
  void add(JsonObject message) { turns_.push_back(std::move(message)); }
  // The last message, of a question that got no answer.
  void take_back() { turns_.pop_back(); }
  void clear() { turns_.clear(); }
  bool empty() const { return turns_.empty(); }

  // With the system message in front.
  JsonArray messages() const;

  std::string as_json(const std::string& model) const;
  std::string as_markdown(const std::string& model) const;

  // As JSON if the name ends in .json, otherwise as Markdown. An existing file is only replaced if
  // `replace`.
  Status save(const std::filesystem::path& path, const std::string& model, bool replace) const;

 private:
  std::string system_;
  JsonArray turns_;
};

}  // namespace slip
