// What was typed before, kept in a file from one run to the next.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slip {

class LineHistory {
 public:
  // Reads the file. An empty path, or a file that cannot be read, gives a history of this run only:
  // a chat must not fail because of it.
  explicit LineHistory(std::filesystem::path file);

  // Oldest first.
  const std::vector<std::string>& entries() const { return entries_; }

  // Remembers `entry` unless it is the last one again, and adds it to the file.
  void add(const std::string& entry);

  // The newest entry older than `before` that contains `part`; small and capital letters are alike.
  std::optional<size_t> find_before(size_t before, std::string_view part) const;

 private:
  std::filesystem::path file_;
  std::vector<std::string> entries_;
};

}  // namespace slip
