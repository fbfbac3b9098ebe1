#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace slip {
namespace {

TEST(WriteFile, AFailureNamesTheFileThatWasWanted) {
  const auto message = [](const std::filesystem::path& path) {
    const Status written = write_file_atomically(path, "x");
    return written.ok() ? "" : written.failure().message;
  };
  const std::filesystem::path there = testing::TempDir();
  EXPECT_EQ(message(there / "no such" / "y.json"), (there / "no such" / "y.json").string() +
                                                       ": cannot be written: there is no folder " +
                                                       (there / "no such").string());
  const std::string denied = message("/proc/y.json");
  EXPECT_TRUE(denied.starts_with("/proc/y.json: cannot create: ")) << denied;
}

class MappedFileTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  // On the disk, and nowhere else if the system lets go of it.
  void write(size_t size) {
    content_.resize(size);
    for (size_t i = 0; i < size; ++i) content_[i] = char(i * 2654435761u >> 13);
    ASSERT_TRUE(write_file_atomically(path_, content_).ok());
    const int file = ::open(path_.c_str(), O_RDONLY);
    ASSERT_GE(file, 0);
    ::fsync(file);
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }

  std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / ("fetched." + std::to_string(::getpid()));
  std::string content_;
};

std::string text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST_F(MappedFileTest, FetchesWhatIsThere) {
  constexpr size_t kSize = (3 << 20) + 1234;  // ends within a block
  write(kSize);
  const Result<MappedFile> file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  struct Range {
    size_t offset, length;
  };
  DiskRoom room;
  for (const Range& range :
       {Range{(1 << 20) + 3, 600001}, Range{0, 1 << 20}, Range{kSize - 600000, 600000},
        Range{4096, 524288}, Range{kSize - 1, 1}, Range{5, 0}, Range{1, kSize - 1}}) {
    const auto part = file.value().bytes().subspan(range.offset, range.length);
    EXPECT_EQ(text(file.value().fetch(part, room)), content_.substr(range.offset, range.length))
        << range.length << " bytes at " << range.offset;
  }
}

TEST_F(MappedFileTest, ReadsPastThePageCache) {
  write(8 << 20);
  const Result<MappedFile> file = MappedFile::open(path_);
  ASSERT_TRUE(file.ok());
  const int direct = ::open(path_.c_str(), O_RDONLY | O_DIRECT);
  if (direct < 0) GTEST_SKIP() << "this file system has no direct reads";
  ::close(direct);
  const auto bytes = file.value().bytes();
  const auto part = bytes.subspan((4 << 20) + 100, 1 << 20);
  DiskRoom room;
  const auto fetched = file.value().fetch(part, room);
  if (fetched.data() == part.data()) GTEST_SKIP() << "the system kept the file in its cache";
  EXPECT_EQ(text(fetched), content_.substr((4 << 20) + 100, 1 << 20));
  // Read through the map, it is in the cache, and nothing is copied.
  EXPECT_EQ(text(part), content_.substr((4 << 20) + 100, 1 << 20));
  EXPECT_EQ(file.value().fetch(part, room).data(), part.data());
}

}  // namespace
}  // namespace slip
