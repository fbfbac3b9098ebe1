// A file that is written beside the one it replaces: what readers see, and what failures say.
#include "base/new_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
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

}  // namespace
}  // namespace slip
