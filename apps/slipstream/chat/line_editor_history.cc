#include "slipstream/chat/line_editor_history.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>

#include "base/file_descriptor.h"
#include "base/files.h"

namespace slip {
namespace {

constexpr size_t kMaxEntries = 2000;
constexpr size_t kMaxFileBytes = 4 << 20;
constexpr mode_t kOwnerOnly = 0600;

// One entry per line of the file, so its own line breaks are escaped.
std::string escaped(const std::string& entry) {
  std::string line;
  for (const char byte : entry) {
    if (byte == '\\') {
      line += "\\\\";
    } else if (byte == '\n') {
      line += "\\n";
    } else {
      line += byte;
    }
  }
  return line;
}

std::string unescaped(std::string_view line) {
  std::string entry;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool escape = line[i] == '\\' && i + 1 < line.size();
    if (escape) ++i;
    entry += escape && line[i] == 'n' ? '\n' : line[i];
  }
  return entry;
}

void append_line(const std::filesystem::path& file, const std::string& line) {
  std::error_code ignored;
  std::filesystem::create_directories(file.parent_path(), ignored);
  // One write, so that lines of two chats do not mix; for the owner's eyes only.
  const FileDescriptor opened(
      ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kOwnerOnly));
  if (!opened.is_open()) return;
  const std::string bytes = line + "\n";
  [[maybe_unused]] const ssize_t written = ::write(opened.get(), bytes.data(), bytes.size());
}

}  // namespace

LineHistory::LineHistory(std::filesystem::path file) : file_(std::move(file)) {
  if (file_.empty()) return;
  const Result<MappedFile> content = MappedFile::open(file_);
  if (!content.ok()) return;
  const std::span<const std::byte> bytes = content.value().bytes();
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool too_long = text.size() > kMaxFileBytes;
  if (too_long) {  // the newest, from the beginning of a line
    text.remove_prefix(text.size() - kMaxFileBytes / 2);
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) entries_.push_back(unescaped(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  if (!too_long && entries_.size() <= 2 * kMaxEntries) return;
  if (entries_.size() > kMaxEntries) entries_.erase(entries_.begin(), entries_.end() - kMaxEntries);
  std::string kept;
  for (const std::string& entry : entries_) kept += escaped(entry) + "\n";
  [[maybe_unused]] const Status written = write_file_atomically(file_, kept, kOwnerOnly);
}

void LineHistory::add(const std::string& entry) {
  if (entry.empty() || (!entries_.empty() && entries_.back() == entry)) return;
  entries_.push_back(entry);
  if (!file_.empty()) append_line(file_, escaped(entry));
}

std::optional<size_t> LineHistory::find_before(size_t before, std::string_view part) const {
  const auto alike = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  for (size_t i = std::min(before, entries_.size()); i-- > 0;) {
    const std::string& entry = entries_[i];
    if (std::search(entry.begin(), entry.end(), part.begin(), part.end(), alike) != entry.end() ||
        part.empty())
      return i;
  }
  return std::nullopt;
}

}  // namespace slip
