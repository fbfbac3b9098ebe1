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

}  // namespace
}  // namespace slip
