#include "lib/core/available_memory.h"

#include "tests/lib/core/stand_in_root.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;

class AvailableMemoryTest : public testing::StandInRoot {
 protected:
  void WriteMachine(std::uint64_t available_mib) const {
    Write("/proc/meminfo",
          "MemTotal:       16384000 kB\nMemFree:          999 kB\nMemAvailable:   " +
              std::to_string(available_mib * 1024) + " kB\nBuffers: 1 kB\n");
  }
  void WriteV2(const std::string& group, const std::string& limit, std::uint64_t used_mib,
               std::uint64_t active_mib = 0, std::uint64_t inactive_mib = 0) const {
    const std::string folder = "/sys/fs/cgroup" + group + "/memory.";
    Write(folder + "max", limit + "\n");
    Write(folder + "current", std::to_string(used_mib * kMiB) + "\n");
    Write(folder + "stat", "anon 77\nfile 999999999\nshmem 5\ninactive_anon 3\ninactive_file " +
                               std::to_string(inactive_mib * kMiB) + "\nactive_file " +
                               std::to_string(active_mib * kMiB) + "\nunevictable 8\n");
  }
  std::uint64_t MiB() const { return FindAvailableMemory(root_).value().bytes / kMiB; }
  std::string Group() const { return FindAvailableMemory(root_).value().group; }
};

TEST_F(AvailableMemoryTest, WithoutControlGroupsTheMachineDecides) {
  EXPECT_FALSE(FindAvailableMemory(root_).has_value());
  WriteMachine(500);
  MountV2("/", "/a");
  EXPECT_EQ(MiB(), 500U);
  EXPECT_EQ(Group(), "");
  WriteV2("/a", "max", 300);
  EXPECT_EQ(MiB(), 500U);
}

TEST_F(AvailableMemoryTest, LimitLessWhatIsHeldCountsAndPagesOfFilesAreFree) {
  WriteMachine(500);
  MountV2("/", "/a");
  WriteV2("/a", std::to_string(400 * kMiB), 300);
  EXPECT_EQ(MiB(), 100U);
  EXPECT_EQ(Group(), root_ + "/sys/fs/cgroup/a");
  EXPECT_EQ(FindAvailableMemory(root_)->limit_bytes, 400 * kMiB);
  WriteV2("/a", std::to_string(400 * kMiB), 300, 20, 30);
  EXPECT_EQ(MiB(), 150U);
  WriteV2("/a", std::to_string(400 * kMiB), 401);
  EXPECT_EQ(MiB(), 0U) << "it may hold more than a limit that was lowered";
  WriteV2("/a", std::to_string(400 * kMiB), 30, 20, 30);
  EXPECT_EQ(MiB(), 400U);
  WriteMachine(90);
  EXPECT_EQ(MiB(), 90U);
  EXPECT_EQ(Group(), "");
}

TEST_F(AvailableMemoryTest, GroupThatLeavesTheLeastOnTheWayUpCounts) {
  WriteMachine(5000);
  MountV2("/", "/a/b");
  WriteV2("/a/b", std::to_string(400 * kMiB), 100);
  WriteV2("/a", std::to_string(1000 * kMiB), 900);
  WriteV2("/c", std::to_string(1), 0);  // not on the way
  EXPECT_EQ(MiB(), 100U);
  EXPECT_EQ(Group(), root_ + "/sys/fs/cgroup/a");
}

TEST_F(AvailableMemoryTest, VersionOneHasFilesOfItsOwn) {
  WriteMachine(5000);
  MountV1("/docker/1f", "/docker/1f");
  const std::string memory = "/sys/fs/cgroup/memory/memory.";
  Write(memory + "usage_in_bytes", std::to_string(300 * kMiB));
  Write(memory + "stat", "inactive_file 1\ntotal_inactive_file " + std::to_string(40 * kMiB) +
                             "\ntotal_active_file " + std::to_string(10 * kMiB) + "\n");
  Write(memory + "limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Group(), "") << "that is no limit";
  Write(memory + "limit_in_bytes", std::to_string(400 * kMiB));
  EXPECT_EQ(MiB(), 150U);
  EXPECT_EQ(Group(), root_ + "/sys/fs/cgroup/memory");
}

TEST_F(AvailableMemoryTest, WhatMakesNoSenseSetsNoBound) {
  WriteMachine(500);
  MountV2("/", "/a");
  for (const char* text : {"", "half", "99999999999999999999999999"}) {
    Write("/sys/fs/cgroup/a/memory.max", text);
    EXPECT_EQ(MiB(), 500U) << text;
  }
  Write("/sys/fs/cgroup/a/memory.max", std::to_string(100 * kMiB));
  EXPECT_EQ(MiB(), 100U) << "without memory.current nothing is held";
  Write("/proc/meminfo", "MemTotal: 3 kB\n");
  EXPECT_EQ(MiB(), 100U);
}

TEST(FindAvailableMemory, ThisMachineHasSome) {
  const std::optional<AvailableMemory> memory = FindAvailableMemory();
  ASSERT_TRUE(memory.has_value());
  EXPECT_GT(memory->bytes, kMiB);
}

}  // namespace
}  // namespace tetrion
