#include "lib/core/cpu_count.h"

#include <sched.h>

#include "tests/lib/core/stand_in_root.h"

namespace tetrion {
namespace {

class QuotaCpusTest : public testing::StandInRoot {
 protected:
  int Quota() const { return QuotaCpus(root_); }
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
