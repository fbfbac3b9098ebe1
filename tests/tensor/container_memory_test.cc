// The memory that a container's limit leaves, read from folders like /sys/fs/cgroup.
#include "tensor/container_memory.h"

#include "tests/checkpoint/test_files.h"

namespace slip {
namespace {

TEST(ContainerMemory, HasNoLimitWithoutOne) {
  const TempFolder folder;
  EXPECT_EQ(free_in_container(folder.path()), std::nullopt);
  folder.write("memory.max", "max\n");
  folder.write("memory.current", "5000\n");
  EXPECT_EQ(free_in_container(folder.path()), std::nullopt);
}

TEST(ContainerMemory, IsTheLimitLessWhatIsUsed) {
  const TempFolder folder;
  folder.write("memory.max", "68719476736\n");
  folder.write("memory.current", "4294967296\n");
  EXPECT_EQ(free_in_container(folder.path()), uint64_t{60} << 30);
  folder.write("memory.current", "70000000000\n");
  EXPECT_EQ(free_in_container(folder.path()), 0u);
}

// 62 of 64 GiB, of which 60 are the files that were just loaded.
TEST(ContainerMemory, ThePageCacheCountsAsFree) {
  const TempFolder folder;
  folder.write("memory.max", "68719476736\n");
  folder.write("memory.current", "66571993088\n");
  folder.write("memory.stat",
               "anon 1610612736\nfile 64961380352\nshmem 536870912\ninactive_anon 100\n"
               "active_anon 200\ninactive_file 53687091200\nactive_file 10737418240\n"
               "unevictable 0\nslab 300\n");
  EXPECT_EQ(free_in_container(folder.path()), uint64_t{62} << 30);
  // Counted at different times, the parts may exceed the whole.
  folder.write("memory.current", "1000\n");
  EXPECT_EQ(free_in_container(folder.path()), uint64_t{64} << 30);
}

}  // namespace
}  // namespace slip
