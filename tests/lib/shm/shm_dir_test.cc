#include "lib/shm/shm_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "lib/shm/region.h"
#include "tests/lib/shm/scratch_dir.h"
#include "tests/support/no_open_files.h"

namespace tetrion {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kRun = 0xABCDEF;
constexpr std::uint64_t kOtherRun = 0x123456789ABCDEF0;

Region MakeRegion(const std::string& dir, const std::string& name, std::uint64_t run_id) {
  Region region = Region::Create(dir, name, RegionKind::kRing, 8192, run_id, 1);
  region.Seal();
  return region;
}

// How often this thread has given up its core of its own accord, as it does to sleep.
long TimesGivenUp() {
  struct rusage usage = {};
  EXPECT_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
  return usage.ru_nvcsw;
}

bool Exists(const std::string& path) {
  return std::filesystem::exists(path);
}

TEST(ShmDirTest, NamesCarryRunProcessAndWorker) {
  EXPECT_EQ(RingName(kRun, 4711, 0xBEEF, 3), "0000000000abcdef.ring.4711-0000beef.3");
  EXPECT_EQ(StreamName(kRun, 4711, 0xBEEF, 3), "0000000000abcdef.stream.4711-0000beef.3");
  EXPECT_TRUE(IsStreamPath("/a.ring.b/" + StreamName(kRun, 1, 2, 3)));
  EXPECT_TRUE(IsRingPath(StreamName(kRun, 1, 2, 3)));
  EXPECT_TRUE(IsRingPath("/x/" + RingName(kRun, 1, 2, 3)));
  EXPECT_FALSE(IsStreamPath("/a.stream.b/" + RingName(kRun, 1, 2, 3)));
  EXPECT_FALSE(IsRingPath("/a.ring.b/" + LearnerName(kRun)));
  EXPECT_FALSE(IsRingPath("/x/notes.ring.txt"));
  EXPECT_EQ(LearnerName(kOtherRun), "123456789abcdef0.learner");
  EXPECT_EQ(DefaultShmDir(), "/dev/shm/tetrion-" + std::to_string(geteuid()));
}

TEST(ShmDirTest, FolderIsMadePrivateAndAcceptedAgain) {
  const ScratchDir scratch;
  const std::string dir = scratch.path() + "/regions";
  EnsureShmDir(dir);
  EnsureShmDir(dir);
  struct stat info = {};
  ASSERT_EQ(stat(dir.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST(ShmDirTest, FolderOpenToOthersIsRefused) {
  const ScratchDir scratch;
  ASSERT_EQ(chmod(scratch.path().c_str(), 0755), 0);
  const Error error = ErrorOf([&] { EnsureShmDir(scratch.path()); });
  EXPECT_EQ(error.code(), ExitCode::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("open to other users"));
}

TEST(ShmDirTest, LinkInPlaceOfTheFolderIsRefused) {
  const ScratchDir scratch;
  const std::string link = scratch.path() + "/link";
  ASSERT_EQ(symlink("/tmp", link.c_str()), 0);
  EXPECT_THAT(ErrorOf([&] { EnsureShmDir(link); }).what(), HasSubstr("is no folder"));
}

TEST(ShmDirTest, FolderOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  const ScratchDir scratch;
  ASSERT_EQ(chown(scratch.path().c_str(), 4711, 4711), 0);
  EXPECT_THAT(ErrorOf([&] { EnsureShmDir(scratch.path()); }).what(), HasSubstr("uid 4711"));
}

TEST(ShmDirTest, ListShowsRegionsWithTheirRunAndLockOnly) {
  const ScratchDir scratch;
  const Region live = MakeRegion(scratch.path(), RingName(kRun, 1, 2, 3), kRun);
  {
    const Region dead = MakeRegion(scratch.path(), LearnerName(kOtherRun), kOtherRun);
  }
  std::ofstream(scratch.path() + "/notes.txt") << "not a region";
  std::ofstream(scratch.path() + "/0000000000abcdef.other") << "neither";
  const std::vector<RegionFile> files = ListRegions(scratch.path());
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[0].run_id, kRun);
  EXPECT_TRUE(files[0].locked);
  EXPECT_EQ(files[1].run_id, kOtherRun);
  EXPECT_FALSE(files[1].locked);
  EXPECT_EQ(files[1].bytes, 8192U);
  EXPECT_TRUE(ListRegions(scratch.path() + "/nowhere").empty());
}

TEST(ShmDirTest, ALookTellsWhetherARegionIsHeldAndByWhom) {
  const ScratchDir dir;
  const std::string path = dir.path() + "/" + LearnerName(7);
  EXPECT_EQ(LookAtRegion(path), RegionHold());
  std::uint64_t owner = 0;
  {
    const Region region =
        Region::Create(dir.path(), LearnerName(7), RegionKind::kLearner, kRegionHeaderBytes, 7, 1);
    owner = RegionOwnerId(region.header());
    EXPECT_NE(owner, 0U);
    EXPECT_EQ(LookAtRegion(path), (RegionHold{.held = true, .owner = owner}));
    region.header().owner_pid.fetch_add(1);
    EXPECT_NE(LookAtRegion(path)->owner, owner) << "another process";
  }
  EXPECT_FALSE(LookAtRegion(path)->held);
}

TEST(ShmDirTest, RemoveStaleSparesARunWithOneLiveRegion) {
  const ScratchDir scratch;
  const std::string& dir = scratch.path();
  const Region live = MakeRegion(dir, RingName(kOtherRun, 1, 2, 0), kOtherRun);
  {
    const Region dead = MakeRegion(dir, RingName(kOtherRun, 1, 2, 1), kOtherRun);
  }
  EXPECT_EQ(RemoveStale(dir, kRun), 0);
  EXPECT_TRUE(Exists(dir + "/" + RingName(kOtherRun, 1, 2, 1)));
}

TEST(ShmDirTest, RemoveStaleTakesDeadRunsButNeverTheRingsOfTheOwnOne) {
  const ScratchDir scratch;
  const std::string& dir = scratch.path();
  const std::vector<std::string> own_rings = {RingName(kRun, 1, 2, 0), StreamName(kRun, 1, 2, 1)};
  {
    const Region a = MakeRegion(dir, RingName(kOtherRun, 1, 2, 0), kOtherRun);
    const Region b = MakeRegion(dir, LearnerName(kOtherRun), kOtherRun);
    const Region own = MakeRegion(dir, LearnerName(kRun), kRun);
    for (const std::string& ring : own_rings) (void)MakeRegion(dir, ring, kRun);
  }
  std::ofstream(dir + "/notes.txt") << "not a region";
  EXPECT_EQ(RemoveStale(dir, kRun), 3);
  for (const std::string& ring : own_rings) EXPECT_TRUE(Exists(dir + "/" + ring)) << ring;
  EXPECT_FALSE(Exists(dir + "/" + LearnerName(kRun)));
  EXPECT_TRUE(Exists(dir + "/notes.txt"));
  EXPECT_EQ(RemoveStale(dir, kRun), 0);
}

TEST(ShmDirTest, RemoveStaleSparesTheLearnerRegionThatAnActorOfTheOwnRunMayRead) {
  const ScratchDir scratch;
  const std::string& dir = scratch.path();
  const Region actor = MakeRegion(dir, RingName(kRun, 1, 2, 0), kRun);
  (void)MakeRegion(dir, LearnerName(kRun), kRun);
  EXPECT_EQ(RemoveStale(dir, kRun), 0);
  EXPECT_TRUE(Exists(dir + "/" + LearnerName(kRun)));
}

TEST(ShmDirTest, RingsOfADeadRunStayWhileTheyAreKept) {
  const ScratchDir scratch;
  const std::string& dir = scratch.path();
  const std::vector<std::string> rings = {RingName(kRun, 1, 2, 0), StreamName(kRun, 1, 2, 1)};
  for (const std::string& ring : rings) (void)MakeRegion(dir, ring, kRun);
  (void)MakeRegion(dir, RingName(kOtherRun, 1, 2, 0), kOtherRun);
  {
    const KeptRings kept(dir, kRun);
    EXPECT_EQ(RemoveStale(dir, 1), 1) << "another run's go";
    for (const std::string& ring : rings) EXPECT_TRUE(Exists(dir + "/" + ring)) << ring;
  }
  EXPECT_EQ(RemoveStale(dir, 1), 2);
  const KeptRings none(dir, kRun);
  const KeptRings nowhere(dir + "/none", kRun);
}

TEST(ShmDirTest, RingOfADeadWorkerIsKeptBesideLivingOnesWithoutAWaitForThem) {
  constexpr std::uint32_t kLiving = 16;
  const ScratchDir scratch;
  const std::string& dir = scratch.path();
  (void)MakeRegion(dir, RingName(kRun, 1, 2, kLiving), kRun);
  std::vector<Region> living;
  for (std::uint32_t i = 0; i < kLiving; ++i) {
    living.push_back(MakeRegion(dir, RingName(kRun, 1, 1, i), kRun));
  }
  const long before = TimesGivenUp();
  const KeptRings kept(dir, kRun);
  EXPECT_LT(TimesGivenUp() - before, 100) << "a wait for each gives up the core 50 times";
  living.clear();
  EXPECT_EQ(RemoveStale(dir, 1), 0);
}

// A streamed run's files count like a local run's.
TEST(ShmDirTest, LockedStreamSparesItsRunsLearnerRegion) {
  const ScratchDir scratch;
  const std::string& dir = scratch.path();
  const Region actor = MakeRegion(dir, StreamName(kOtherRun, 1, 2, 0), kOtherRun);
  {
    const Region learner = MakeRegion(dir, LearnerName(kOtherRun), kOtherRun);
  }
  EXPECT_EQ(RemoveStale(dir, kRun), 0);
  EXPECT_TRUE(Exists(dir + "/" + LearnerName(kOtherRun)));
}

TEST(ShmDirTest, StreamsOfDeadRunsAreRemoved) {
  const ScratchDir scratch;
  const std::string& dir = scratch.path();
  {
    const Region dead = MakeRegion(dir, StreamName(kOtherRun, 1, 2, 0), kOtherRun);
  }
  ASSERT_EQ(ListRegions(dir).size(), 1U);
  EXPECT_EQ(ListRegions(dir)[0].run_id, kOtherRun);
  EXPECT_EQ(RemoveStale(dir, kRun), 1);
  EXPECT_TRUE(ListRegions(dir).empty());
}

TEST(ShmDirTest, OneDeadRingIsRemovedALivingOneOnceItIsDeadAndTheRestStay) {
  const ScratchDir scratch;
  const std::string& dir = scratch.path();
  std::optional<Region> live = MakeRegion(dir, RingName(kRun, 1, 2, 0), kRun);
  const std::string dead = dir + "/" + RingName(kRun, 1, 2, 1);
  const std::string bystander = dir + "/" + RingName(kRun, 1, 2, 2);
  (void)MakeRegion(dir, RingName(kRun, 1, 2, 1), kRun);
  (void)MakeRegion(dir, RingName(kRun, 1, 2, 2), kRun);
  const std::string path = live->path();
  EXPECT_FALSE(TryRemoveDeadRing(dir, kRun, path));
  EXPECT_FALSE(TryRemoveDeadRing(dir, kOtherRun, dead));
  EXPECT_TRUE(Exists(dead));
  EXPECT_TRUE(TryRemoveDeadRing(dir, kRun, dead));
  EXPECT_FALSE(Exists(dead));
  EXPECT_TRUE(Exists(path));
  live.reset();
  EXPECT_TRUE(TryRemoveDeadRing(dir, kRun, path));
  EXPECT_FALSE(Exists(path));
  EXPECT_TRUE(Exists(bystander));
}

TEST(ShmDirTest, LearnersRegionGoesOnceNoneOfTheRunsIsHeld) {
  const ScratchDir scratch;
  const std::string& dir = scratch.path();
  EXPECT_TRUE(TryRemoveDeadLearner(dir + "/none", kRun));
  std::optional<Region> learner = MakeRegion(dir, LearnerName(kRun), kRun);
  std::optional<Region> ring = MakeRegion(dir, RingName(kRun, 1, 2, 0), kRun);
  const Region of_another = MakeRegion(dir, LearnerName(kOtherRun), kOtherRun);
  const std::string path = learner->path();
  EXPECT_FALSE(TryRemoveDeadLearner(dir, kRun));
  learner.reset();
  EXPECT_FALSE(TryRemoveDeadLearner(dir, kRun));  // a worker has it mapped
  EXPECT_TRUE(Exists(path));
  const std::string kept = ring->path();
  ring.reset();
  EXPECT_TRUE(TryRemoveDeadLearner(dir, kRun));
  EXPECT_FALSE(Exists(path));
  EXPECT_TRUE(Exists(kept));
  EXPECT_FALSE(TryRemoveDeadLearner(dir, kOtherRun));
}

TEST(ShmDirTest, TriesAreRefusedAtOnceWhileTheFolderIsLocked) {
  const ScratchDir scratch;
  const std::string& dir = scratch.path();
  const std::string dead = dir + "/" + RingName(kRun, 1, 2, 0);
  (void)MakeRegion(dir, RingName(kRun, 1, 2, 0), kRun);
  {
    const ShmDirLock lock(dir);
    EXPECT_EQ(ShmDirLock::Try(dir), nullptr);
    EXPECT_FALSE(TryRemoveDeadRing(dir, kRun, dead));
    EXPECT_TRUE(Exists(dead));
  }
  EXPECT_NE(ShmDirLock::Try(dir), nullptr);
  EXPECT_TRUE(TryRemoveDeadRing(dir, kRun, dead));
}

// Files left by killed owners are seen as dead every time, live ones never.
TEST(ShmDirTest, LockThatCannotBeOpenedForNowIsTriedAgain) {
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "UBSan needs open files";
  const ScratchDir dir;
  EXPECT_EQ(ErrorOf([&] { ShmDirLock lock(dir.path() + "/none"); }).code(), ExitCode::kUsage);
  const testing::NoOpenFiles none;
  EXPECT_EQ(ErrorOf([&] { ShmDirLock lock(dir.path()); }).code(), ExitCode::kTryAgain);
}

TEST(ShmDirTest, KilledOwnersFilesAreRemovedAHundredTimes) {
  const ScratchDir scratch;
  const std::string& dir = scratch.path();
  for (int i = 0; i < 100; ++i) {
    PausedChild owner([&] {
      Region region = MakeRegion(dir, LearnerName(kOtherRun), kOtherRun);
      raise(SIGSTOP);
    });
    ASSERT_EQ(RemoveStale(dir, kRun), 0) << "removed a live region in round " << i;
    owner.Kill();
    ASSERT_EQ(RemoveStale(dir, kRun), 1) << "kept a dead region in round " << i;
  }
}

}  // namespace
}  // namespace tetrion
