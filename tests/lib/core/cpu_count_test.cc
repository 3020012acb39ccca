#include "lib/core/cpu_count.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tetrion {
namespace {

namespace fs = std::filesystem;

// A folder that stands in for the machine's root.
class QuotaCpusTest : public ::testing::Test {
 protected:
  QuotaCpusTest() {
    std::string pattern = fs::temp_directory_path() / "tetrion-cpus-XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~QuotaCpusTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  // One hierarchy whose group `mounted` lies in /sys/fs/cgroup; the process is in `group`.
  void MountV2(const std::string& mounted, const std::string& group) const {
    Write("/proc/self/mountinfo",
          "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
          "30 22 0:26 " +
              mounted + " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n");
    Write("/proc/self/cgroup", "0::" + group + "\n");
  }
  void MountV1(const std::string& mounted, const std::string& group) const {
    Write("/proc/self/mountinfo",
          "31 22 0:27 " + mounted + " /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n" +
              "32 22 0:28 " + mounted + " /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    Write("/proc/self/cgroup", "5:cpuset:/elsewhere\n4:cpu,cpuacct:" + group + "\n0::/\n");
  }
  int Quota() const { return QuotaCpus(root_); }

  std::string root_;
};

TEST_F(QuotaCpusTest, WithoutControlGroupsThereIsNoQuota) {
  EXPECT_EQ(Quota(), 0);
  MountV2("/", "/a");
  EXPECT_EQ(Quota(), 0);
  Write("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_EQ(Quota(), 0);
}

TEST_F(QuotaCpusTest, QuotaIsRoundedUpAndAtLeastOne) {
  MountV2("/", "/");
  for (const auto& [text, cpus] :
       {std::pair{"200000 100000", 2}, std::pair{"250000 100000", 3}, std::pair{"1000 100000", 1},
        std::pair{"100000 100000", 1}, std::pair{"70000 20000\n", 4}}) {
    Write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(Quota(), cpus) << text;
  }
}

TEST_F(QuotaCpusTest, SmallestQuotaUpToTheHighestMountedGroupCounts) {
  MountV2("/", "/a/b/c");
  Write("/sys/fs/cgroup/a/b/c/cpu.max", "800000 100000");
  EXPECT_EQ(Quota(), 8);
  Write("/sys/fs/cgroup/a/b/cpu.max", "max 100000");
  Write("/sys/fs/cgroup/a/cpu.max", "300000 100000");
  EXPECT_EQ(Quota(), 3);
  Write("/sys/fs/cgroup/cpu.max", "100000 50000");
  EXPECT_EQ(Quota(), 2);
  Write("/sys/fs/cgroup/d/cpu.max", "50000 50000");  // not on the way
  EXPECT_EQ(Quota(), 2);
}

TEST_F(QuotaCpusTest, ContainerThatSeesOnlyItsOwnGroupFindsItsQuota) {
  MountV2("/docker/1f", "/docker/1f");
  Write("/sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(Quota(), 2);
  MountV2("/docker/1f", "/docker/1f/inner");
  Write("/sys/fs/cgroup/inner/cpu.max", "100000 100000");
  EXPECT_EQ(Quota(), 1);
}

TEST_F(QuotaCpusTest, VersionOneHasItsQuotaInTwoFiles) {
  MountV1("/docker/1f", "/docker/1f");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(Quota(), 0);
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(Quota(), 2);
  MountV1("/", "/jobs/7");
  Write("/sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "90000\n");
  EXPECT_EQ(Quota(), 1);
}

TEST_F(QuotaCpusTest, WhatMakesNoSenseSetsNoBound) {
  MountV2("/", "no/slash");
  for (const char* text : {"", "half 100000", "100000 0", "-5 100000", "1e30 1", "nan 1"}) {
    Write("/sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(Quota(), 0) << text;
  }
  Write("/proc/self/mountinfo", "- cgroup2\n\n1 2 - cgroup2 x rw\n");
  Write("/proc/self/cgroup", "::\n:\n0");
  EXPECT_EQ(Quota(), 0);
}

TEST(UsableCpusTest, AffinityBoundsIt) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(UsableCpus(), 1);
  EXPECT_LE(UsableCpus(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(UsableCpus(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace tetrion
