// A file that arrives in pieces, in any order, and survives the death of the process at any moment.
// Beside the bytes ("<name>.partial") lies a table ("<name>.pieces") of how many bytes of each
// piece have come. It is mapped into memory and raised after each write, so that the system keeps
// both whatever becomes of us. After a power cut the table may claim bytes that never reached the
// disk: the checksum of the whole file finds that out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace slip {

class PartialFile {
 public:
  // Goes on with what is there, if it is for a file of this size.
  static Result<PartialFile> open(const std::filesystem::path& target, uint64_t size,
                                  uint64_t piece_bytes);

  PartialFile(PartialFile&& other) noexcept;
  PartialFile& operator=(PartialFile&&) = delete;
  ~PartialFile();

  uint64_t size() const { return size_; }
  size_t pieces() const { return size_t((size_ + piece_bytes_ - 1) / piece_bytes_); }
  uint64_t begin_of(size_t piece) const { return piece * piece_bytes_; }
  uint64_t length_of(size_t piece) const;
  size_t piece_at(uint64_t offset) const { return size_t(offset / piece_bytes_); }

  // Bytes of a piece that are there, from its beginning on. Any thread may ask.
  uint64_t done(size_t piece) const;
  bool is_done(size_t piece) const { return done(piece) == length_of(piece); }
  uint64_t bytes_done() const;
  // Without a gap, from the beginning of the file; `from` is what was known to be.
  uint64_t bytes_done_in_a_row(uint64_t from) const;

  // Appends to a piece. One thread per piece at a time.
  Status append(size_t piece, std::span<const char> bytes);
  Status read(uint64_t offset, std::span<char> into) const;

  // Forgets all that came.
  void start_again();

  // Lets the disk begin with these bytes, so that finish() need not wait for all of them.
  void begin_writing_out(uint64_t offset, uint64_t length) const;
  // The file under its name at last, and on the disk.
  Status finish();

  // Of a partial file that may be there: how much has come, and what the disk has set aside for it.
  static uint64_t bytes_there(const std::filesystem::path& target, uint64_t size,
                              uint64_t piece_bytes);
  static uint64_t disk_bytes(const std::filesystem::path& target);

 private:
  struct Table;
  PartialFile() = default;
  Status open_table(bool keep);
  uint64_t* counter(size_t piece) const;

  std::filesystem::path target_, bytes_path_, table_path_;
  uint64_t size_ = 0, piece_bytes_ = 0;
  int fd_ = -1;
  Table* table_ = nullptr;  // mapped
  size_t table_bytes_ = 0;
};

}  // namespace slip
