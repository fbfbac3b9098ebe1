// A checkpoint's folder while it is made: everything is written into a hidden folder beside it,
// which gets the real name in one step at the very end. Whoever is killed in between leaves only
// the hidden folder, and the same command goes on with it or begins it anew.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace slip {

// How a file of another checkpoint becomes part of this one without being changed.
enum class LinkWay {
  automatic,  // hard links; copies where the file system has none
  hard,
  reference,  // symbolic links: the other checkpoint must stay where it is
  copy,
};
Result<LinkWay> parse_link_way(std::string_view word);

// A failure if something has the name of a folder that is to be made: nothing is ever replaced.
Status check_free(const std::filesystem::path& target);

class OutputFolder {
 public:
  // Takes the hidden folder of `target`, which must not exist yet. `purpose` says what is made in
  // every detail: what an earlier run with another purpose left is removed, what one with the same
  // left is kept. Another process that makes the same folder is an error.
  static Result<OutputFolder> open(const std::filesystem::path& target, std::string_view purpose);

  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  // Where to write.
  const std::filesystem::path& path() const { return hidden_; }
  std::filesystem::path file(std::string_view name) const { return hidden_ / name; }
  bool has(std::string_view name) const;

  // Refuses, before hours of work, what the disk has no room for. `files` are the names and bytes
  // of what will be written here; those that are here already need no more room.
  Status check_room(const std::map<std::string, uint64_t>& files) const;

  // A whole file, on the disk when this returns.
  Status write(std::string_view name, std::string_view content) const;

  // Bytes that adopt() will have to copy.
  Result<uint64_t> bytes_to_adopt(const std::filesystem::path& from, LinkWay way) const;

  // Takes over a file of another checkpoint under its own name; returns the bytes that had to be
  // copied.
  Result<uint64_t> adopt(const std::filesystem::path& from, LinkWay way) const;

  // Gives the folder its name, or removes it.
  Status publish();
  Status discard();

 private:
  OutputFolder() = default;

  std::filesystem::path target_, hidden_;
  int lock_ = -1;
};

}  // namespace slip
