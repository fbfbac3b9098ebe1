#include "convert/output_folder.h"

#include <sys/stat.h>

#include "base/files.h"
#include "tests/checkpoint/test_files.h"

namespace slip {
namespace {

namespace fs = std::filesystem;

TEST(OutputFolder, HasItsNameOnlyWhenPublished) {
  const TempFolder temp;
  const fs::path target = temp.path() / "made";
  OutputFolder folder = OutputFolder::open(target, "purpose").value();
  ASSERT_TRUE(folder.write("config.json", "{}").ok());
  EXPECT_FALSE(fs::exists(target));
  ASSERT_TRUE(folder.publish().ok());
  EXPECT_EQ(read_text_file(target / "config.json").value(), "{}");
  EXPECT_EQ(std::distance(fs::directory_iterator(target), {}), 1);  // nothing of ours is left
  EXPECT_EQ(std::distance(fs::directory_iterator(temp.path()), {}), 1);
}

TEST(OutputFolder, GoesOnWithWhatTheSamePurposeLeft) {
  const TempFolder temp;
  const fs::path target = temp.path() / "made/";
  {
    OutputFolder folder = OutputFolder::open(target, "one").value();
    ASSERT_TRUE(folder.write("done", "1").ok());
    temp.write(".made.partial/half.safetensors.tmp77", "what a killed run was writing");
    temp.write(".made.partial/half.new", "what a killed run was writing");
  }
  {
    OutputFolder folder = OutputFolder::open(target, "one").value();
    EXPECT_TRUE(folder.has("done"));
    EXPECT_FALSE(folder.has("half.safetensors.tmp77"));
    EXPECT_FALSE(folder.has("half.new"));
  }
  OutputFolder folder = OutputFolder::open(target, "another").value();
  EXPECT_FALSE(folder.has("done"));
}

TEST(OutputFolder, RefusesWhatIsThereAndWhatAnotherMakes) {
  const TempFolder temp;
  temp.write("there/file", "");
  expect_error(OutputFolder::open(temp.path() / "there", ""), {"there", "is there already"});
  const OutputFolder first = OutputFolder::open(temp.path() / "new", "").value();
  expect_error(OutputFolder::open(temp.path() / "new", ""), {"new", "another process"});
}

TEST(OutputFolder, AdoptsByLinkReferenceAndCopy) {
  const TempFolder temp;
  const fs::path from = temp.write("a.safetensors", "weights");
  const fs::path link = temp.path() / "snapshot.safetensors";
  fs::create_symlink(from, link);  // as the Hugging Face cache has it
  OutputFolder folder = OutputFolder::open(temp.path() / "made", "").value();
  EXPECT_EQ(folder.adopt(link, LinkWay::hard).value(), 0u);
  EXPECT_TRUE(fs::equivalent(folder.file("snapshot.safetensors"), from));
  EXPECT_FALSE(fs::is_symlink(folder.file("snapshot.safetensors")));
  EXPECT_EQ(folder.adopt(link, LinkWay::reference).value(), 0u);
  EXPECT_TRUE(fs::is_symlink(folder.file("snapshot.safetensors")));
  EXPECT_EQ(folder.adopt(link, LinkWay::copy).value(), 7u);
  EXPECT_FALSE(fs::equivalent(folder.file("snapshot.safetensors"), from));
  EXPECT_EQ(read_text_file(folder.file("snapshot.safetensors")).value(), "weights");
  expect_error(folder.adopt(temp.path() / "absent", LinkWay::automatic), {"absent"});
}

TEST(OutputFolder, WantsRoomOnlyForWhatIsNotThere) {
  const TempFolder temp;
  const OutputFolder folder = OutputFolder::open(temp.path() / "made", "").value();
  const uint64_t too_much = free_disk_bytes(temp.path()).value() * 2;
  EXPECT_TRUE(folder.check_room({{"small", 1}}).ok());
  expect_error(folder.check_room({{"large", too_much}}), {"made", "more bytes of disk"});
  // What an interrupted run has finished lies on the disk already.
  ASSERT_TRUE(folder.write("large", "").ok());
  EXPECT_TRUE(folder.check_room({{"large", too_much}, {"small", 1}}).ok());
}

TEST(OutputFolder, KnowsWhatAdoptingCopies) {
  const TempFolder temp;
  const fs::path here = temp.write("a.safetensors", "weights");
  const OutputFolder folder = OutputFolder::open(temp.path() / "made", "").value();
  EXPECT_EQ(folder.bytes_to_adopt(here, LinkWay::copy).value(), 7u);
  for (const LinkWay way : {LinkWay::automatic, LinkWay::hard, LinkWay::reference})
    EXPECT_EQ(folder.bytes_to_adopt(here, way).value(), 0u);
  expect_error(folder.bytes_to_adopt(temp.path() / "absent", LinkWay::automatic), {"absent"});
  // No hard link leads to another file system.
  const fs::path elsewhere = "/sys/kernel/mm/transparent_hugepage/enabled";
  struct stat there {
  }, home{};
  if (::stat(elsewhere.c_str(), &there) != 0 || ::stat(temp.path().c_str(), &home) != 0 ||
      there.st_dev == home.st_dev)
    GTEST_SKIP() << "there is no other file system";
  EXPECT_EQ(folder.bytes_to_adopt(elsewhere, LinkWay::automatic).value(), uint64_t(there.st_size));
}

}  // namespace
}  // namespace slip
