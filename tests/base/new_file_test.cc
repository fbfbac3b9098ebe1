// A file that is written beside the one it replaces: what readers see, and what failures say.
#include "base/new_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/files.h"

namespace slip {
namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

class NewFileTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  size_t files() const {
    return size_t(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("new_file." + std::to_string(::getpid()));
  const std::filesystem::path path_ = folder_ / "x.txt";
};

TEST_F(NewFileTest, TakesItsNameWhenItIsWhole) {
  ASSERT_TRUE(write_file_atomically(path_, "old").ok());
  Result<NewFile> file = NewFile::create(path_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file.value().write(2, bytes("w!")).ok());
  ASSERT_TRUE(file.value().write(0, bytes("ne")).ok());
  EXPECT_EQ(read_text_file(path_).value(), "old");
  ASSERT_TRUE(file.value().finish().ok());
  EXPECT_EQ(read_text_file(path_).value(), "new!");
  EXPECT_EQ(files(), 1u);
}

TEST_F(NewFileTest, LeavesNothingOfWhatWasNotFinished) {
  ASSERT_TRUE(write_file_atomically(path_, "old").ok());
  {
    Result<NewFile> file = NewFile::create(path_);
    ASSERT_TRUE(file.ok());
    const NewFile moved = std::move(file).value();
    EXPECT_EQ(files(), 2u);
  }
  EXPECT_EQ(files(), 1u);
  EXPECT_EQ(read_text_file(path_).value(), "old");
}

TEST_F(NewFileTest, FailuresNameTheFileThatWasWanted) {
  ASSERT_TRUE(write_file_atomically(path_, "old").ok());
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  const rlimit small{.rlim_cur = 4, .rlim_max = usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status written = write_file_atomically(path_, "too long");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.failure().message,
            path_.string() + ": cannot write: File too large; nothing was changed");
  EXPECT_EQ(read_text_file(path_).value(), "old");
  EXPECT_EQ(files(), 1u);
}

TEST_F(NewFileTest, AFolderInItsPlaceStays) {
  std::filesystem::create_directories(path_ / "inside");
  const Status written = write_file_atomically(path_, "x");
  ASSERT_FALSE(written.ok());
  EXPECT_TRUE(written.failure().message.starts_with(path_.string() + ": cannot replace: "))
      << written.failure().message;
  EXPECT_EQ(files(), 1u);
}

// Renaming a file over /dev/null would break the machine.
TEST_F(NewFileTest, WhatIsNoFileIsNotReplaced) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const std::filesystem::path link = folder_ / "link";
  std::filesystem::create_symlink(path_, link);
  for (const std::filesystem::path& path : {path_, link}) {
    const Status written = write_file_atomically(path, "x");
    ASSERT_FALSE(written.ok());
    EXPECT_EQ(
        written.failure().message,
        path.string() + ": cannot be written: it is a device, a pipe or a socket; name a file");
  }
  EXPECT_TRUE(std::filesystem::is_fifo(path_));
  EXPECT_EQ(files(), 2u);
}

TEST_F(NewFileTest, ALinkIsReplacedAndNotFollowed) {
  ASSERT_TRUE(write_file_atomically(path_, "old").ok());
  const std::filesystem::path link = folder_ / "link";
  std::filesystem::create_symlink(path_, link);
  ASSERT_TRUE(write_file_atomically(link, "new").ok());
  EXPECT_EQ(read_text_file(path_).value(), "old");
  EXPECT_FALSE(std::filesystem::is_symlink(link));
}

TEST_F(NewFileTest, APersonsLinksStay) {
  const std::filesystem::path link = folder_ / "link", second = folder_ / "second";
  std::filesystem::create_symlink("x.txt", link);  // which is not there yet
  std::filesystem::create_symlink(link, second);
  EXPECT_EQ(place_to_write(second).value(), path_);
  EXPECT_EQ(place_to_write("x.txt").value(), "x.txt");
  std::filesystem::create_symlink("loop", folder_ / "loop");
  EXPECT_TRUE(place_to_write(folder_ / "loop").failure().message.ends_with("form a loop)"));
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_FALSE(place_to_write(second).ok());
}

}  // namespace
}  // namespace slip
