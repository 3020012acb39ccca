#include "lib/shm/region.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "lib/shm/region_header.h"
#include "lib/shm/shm_dir.h"
#include "tests/lib/shm/scratch_dir.h"
#include "tests/support/no_open_files.h"

namespace tetrion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kRun = 0xABC;
constexpr std::uint64_t kSpec = 0x5EC;
constexpr std::uint64_t kBytes = 12288;
const std::string kName = "0000000000000abc.learner";

class RegionTest : public ::testing::Test {
 protected:
  Region Make(bool seal = true) {
    Region region = Region::Create(dir(), kName, RegionKind::kLearner, kBytes, kRun, kSpec);
    if (seal) region.Seal();
    return region;
  }
  Error AttachError(const AttachNeeds& needs = {}) {
    return ErrorOf([&] { Region::Attach(path(), RegionKind::kLearner, needs); });
  }
  Region Adopt() { return Region::Adopt(dir(), kName, RegionKind::kLearner, kBytes, kRun, kSpec); }
  const std::string& dir() const { return scratch_.path(); }
  std::string path() const { return dir() + "/" + kName; }

 private:
  ScratchDir scratch_;
};

TEST_F(RegionTest, IsPrivateAllocatedAndZero) {
  const Region region = Make();
  struct stat info = {};
  ASSERT_EQ(stat(path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(info.st_size, static_cast<off_t>(kBytes));
  EXPECT_GE(info.st_blocks * 512, static_cast<blkcnt_t>(kBytes));
  EXPECT_EQ(region.size(), kBytes);
  EXPECT_EQ(region.payload() - region.data(), 4096);
  for (std::uint64_t i = 0; i < kBytes - 4096; ++i) ASSERT_EQ(region.payload()[i], std::byte{0});
}

TEST_F(RegionTest, GoldenHeaderFieldsTellKindRunAndOwner) {
  Region region = Make();
  const RegionHeader& header = region.header();
  EXPECT_EQ(std::memcmp(region.data(), "TETRION1", 8), 0);
  EXPECT_EQ(header.version, 1U);
  EXPECT_EQ(header.kind, 2U);
  EXPECT_EQ(header.total_bytes, kBytes);
  EXPECT_EQ(header.run_id, kRun);
  EXPECT_EQ(header.spec_hash, kSpec);
  EXPECT_EQ(header.owner_pid.load(), static_cast<std::uint32_t>(getpid()));
  EXPECT_EQ(header.owner_start_ticks.load(), OwnStartTicks());
  EXPECT_GT(OwnStartTicks(), 0U);
  EXPECT_EQ(std::string(header.boot_id), BootId());
}

TEST_F(RegionTest, AttachedMappingSharesTheOwnersBytes) {
  const Region owner = Make();
  const Region peer = Region::Attach(path(), RegionKind::kLearner,
                                     {.run_id = kRun, .spec_hash = kSpec, .live_owner = true});
  owner.payload()[5] = std::byte{42};
  EXPECT_EQ(peer.payload()[5], std::byte{42});
  EXPECT_NE(owner.data(), peer.data());
  EXPECT_FALSE(peer.is_owner());
}

TEST_F(RegionTest, TakenNameIsRefused) {
  const Region region = Make();
  EXPECT_EQ(ErrorOf([&] { Make(); }).code(), ExitCode::kUsage);
}

TEST_F(RegionTest, UnsealedRegionCannotBeAttached) {
  Region region = Make(/*seal=*/false);
  const Error error = AttachError();
  EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  EXPECT_THAT(error.what(), HasSubstr("not ready"));
  EXPECT_FALSE(Region::AttachIfReady(path(), RegionKind::kLearner));
  region.Seal();
  EXPECT_TRUE(Region::AttachIfReady(path(), RegionKind::kLearner));
}

TEST_F(RegionTest, MissingRegionIsTriedAgain) {
  EXPECT_EQ(AttachError().code(), ExitCode::kTryAgain);
  EXPECT_FALSE(Region::AttachIfReady(path(), RegionKind::kLearner));
}

TEST_F(RegionTest, EachMismatchIsRefusedWithBothValues) {
  const Region region = Make();
  const Error spec = AttachError({.spec_hash = 0x123});
  EXPECT_EQ(spec.code(), ExitCode::kConfig);
  EXPECT_THAT(spec.what(), AllOf(HasSubstr("layout"), HasSubstr("0x5ec"), HasSubstr("0x123")));
  EXPECT_THAT(AttachError({.run_id = 0x999}).what(),
              AllOf(HasSubstr("run"), HasSubstr("0xabc"), HasSubstr("0x999")));
  EXPECT_THAT(AttachError({.bytes = 16384}).what(), HasSubstr("another size"));
  EXPECT_THAT(AttachError({.min_bytes = 16384}).what(), HasSubstr("too small"));
  EXPECT_THAT(ErrorOf([&] { Region::Attach(path(), RegionKind::kRing); }).what(),
              AllOf(HasSubstr("kind 0x2"), HasSubstr("0x1 is needed")));
}

TEST_F(RegionTest, OtherVersionIsRefusedWithBothValues) {
  const Region region = Make();
  region.header().version = 9;
  const Error error = AttachError();
  EXPECT_EQ(error.code(), ExitCode::kConfig);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("version 0x9"), HasSubstr("0x1 is needed")));
}

TEST_F(RegionTest, ForeignMagicIsRefused) {
  const Region region = Make();
  region.header().magic.store(0x1234);
  EXPECT_THAT(AttachError().what(), HasSubstr("magic 0x1234"));
}

TEST_F(RegionTest, DamagedHeaderIsRefused) {
  const Region region = Make();
  region.header().spec_hash ^= 1;
  EXPECT_THAT(AttachError().what(), HasSubstr("checksum"));
}

TEST_F(RegionTest, TruncatedRegionIsRefused) {
  {
    const Region region = Make();
  }
  ASSERT_EQ(truncate(path().c_str(), 8192), 0);
  const Error error = AttachError();
  EXPECT_EQ(error.code(), ExitCode::kConfig);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("truncated"), HasSubstr("8192"), HasSubstr("12288")));
  ASSERT_EQ(truncate(path().c_str(), 16384), 0);
  EXPECT_THAT(AttachError().what(), HasSubstr("longer than its header says: 16384 bytes"));
}

TEST_F(RegionTest, FileSmallerThanAHeaderIsNotReady) {
  {
    const Region region = Make();
  }
  for (const int bytes : {0, 1, 4095}) {
    ASSERT_EQ(truncate(path().c_str(), bytes), 0);
    EXPECT_THAT(AttachError().what(), HasSubstr("too small")) << bytes;
  }
}

TEST_F(RegionTest, StaleRegionIsRefusedWhenALiveOwnerIsAskedFor) {
  {
    const Region region = Make();
  }
  EXPECT_THAT(AttachError({.live_owner = true}).what(), HasSubstr("stale"));
  EXPECT_FALSE(Region::Attach(path(), RegionKind::kLearner).OwnerAlive());
}

TEST_F(RegionTest, ForeignRegionIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const Region region = Make();
  ASSERT_EQ(chown(path().c_str(), 4711, 4711), 0);
  const Error error = AttachError();
  EXPECT_EQ(error.code(), ExitCode::kUsage);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("foreign"), HasSubstr("uid 4711")));
}

TEST_F(RegionTest, RegionOpenToOthersIsRefused) {
  const Region region = Make();
  for (const mode_t mode : {0640U, 0620U, 0604U, 0602U}) {
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
    EXPECT_THAT(AttachError().what(), HasSubstr("open to other users")) << mode;
  }
}

TEST_F(RegionTest, LinkInPlaceOfTheNameIsRefusedByEveryVerb) {
  const Region target = Region::Create(dir(), "target", RegionKind::kLearner, kBytes, kRun, kSpec);
  ASSERT_EQ(symlink((dir() + "/target").c_str(), path().c_str()), 0);
  EXPECT_EQ(AttachError().code(), ExitCode::kUsage);
  EXPECT_EQ(ErrorOf([&] { Make(); }).code(), ExitCode::kUsage);
  EXPECT_EQ(ErrorOf([&] { Adopt(); }).code(), ExitCode::kUsage);
}

TEST_F(RegionTest, SecondNameAndSpecialFilesAreRefused) {
  {
    const Region region = Make();
  }
  ASSERT_EQ(link(path().c_str(), (dir() + "/second").c_str()), 0);
  EXPECT_THAT(AttachError().what(), HasSubstr("hard link"));
  ASSERT_EQ(unlink(path().c_str()), 0);
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(AttachError().what(), HasSubstr("not a plain file"));
}

TEST_F(RegionTest, OwnerIsSeenAliveUntilItIsKilled) {
  PausedChild owner([&] {
    const Region region = Make();
    raise(SIGSTOP);
  });
  const Region peer = Region::Attach(path(), RegionKind::kLearner);
  EXPECT_TRUE(peer.OwnerAlive());
  EXPECT_EQ(peer.header().owner_pid.load(), static_cast<std::uint32_t>(owner.pid()));
  owner.Kill();
  EXPECT_FALSE(peer.OwnerAlive());
}

TEST_F(RegionTest, SecondProcessAdoptsAfterTheFirstIsKilledAndKeepsTheBytes) {
  PausedChild first([&] {
    const Region region = Make();
    region.payload()[9] = std::byte{99};
    raise(SIGSTOP);
  });
  const Region reader = Region::Attach(path(), RegionKind::kLearner);
  const Error alive = ErrorOf([&] { Adopt(); });
  EXPECT_EQ(alive.code(), ExitCode::kTryAgain);
  EXPECT_THAT(alive.what(), HasSubstr("live owner"));
  first.Kill();
  PausedChild second([&] {
    const Region region = Adopt();
    region.payload()[10] = std::byte{100};
    raise(SIGSTOP);
  });
  EXPECT_TRUE(reader.OwnerAlive());
  EXPECT_EQ(reader.payload()[9], std::byte{99});
  EXPECT_EQ(reader.payload()[10], std::byte{100});
  EXPECT_EQ(reader.header().owner_pid.load(), static_cast<std::uint32_t>(second.pid()));
}

TEST_F(RegionTest, RegionOfAnotherSizeOrLayoutIsNotAdopted) {
  {
    const Region region = Make();
  }
  const auto adopt = [&](std::uint64_t bytes, std::uint64_t spec) {
    return ErrorOf([&, bytes, spec] {
      Region::CreateOrAdopt(dir(), kName, RegionKind::kLearner, bytes, kRun, spec);
    });
  };
  EXPECT_EQ(adopt(kBytes + 4096, kSpec).code(), ExitCode::kConfig);
  EXPECT_EQ(adopt(kBytes, kSpec + 1).code(), ExitCode::kConfig);
  EXPECT_EQ(adopt(kBytes, kSpec).code(), ExitCode::kOk);
}

TEST_F(RegionTest, HalfMadeRegionOfADeadCreatorIsMadeAnew) {
  {
    const Region half_made = Make(/*seal=*/false);
  }
  Region region = Region::CreateOrAdopt(dir(), kName, RegionKind::kLearner, kBytes, kRun, kSpec);
  EXPECT_FALSE(region.sealed());
  EXPECT_THAT(ErrorOf([&] {
                Region::CreateOrAdopt(dir(), kName, RegionKind::kLearner, kBytes, kRun, kSpec);
              }).what(),
              HasSubstr("just starting"));
  region.Seal();
  EXPECT_EQ(AttachError().code(), ExitCode::kOk);
}

// Each of random bytes over the header, over its fixed fields, and a file cut short.
TEST_F(RegionTest, DamagedRegionOfADeadOwnerIsMadeAnewAndItsReadersSeeThat) {
  const auto adopt = [&] {
    return Region::CreateOrAdopt(dir(), kName, RegionKind::kLearner, kBytes, kRun, kSpec);
  };
  const std::vector<std::function<void(Region&)>> damages = {
      [](Region& region) { std::memset(region.data(), 0xA5, kRegionHeaderBytes); },
      [](Region& region) { region.header().run_id ^= 1; },
      [](Region& region) { ASSERT_EQ(truncate(region.path().c_str(), 8192), 0); }};
  for (const auto& damage : damages) {
    std::optional<Region> owner = Make();
    const Region reader = Region::Attach(path(), RegionKind::kLearner);
    damage(*owner);
    const Error refusal = ErrorOf([&] { (void)adopt(); });
    EXPECT_EQ(refusal.code(), ExitCode::kTryAgain);
    EXPECT_THAT(refusal.what(), HasSubstr("(its owner lives)"));
    EXPECT_TRUE(reader.Named());
    owner.reset();
    Region anew = adopt();
    EXPECT_FALSE(anew.sealed());
    EXPECT_FALSE(reader.Named());
    anew.Unlink();
  }
}

// What another build or other settings left is no damage: it is for people to remove.
TEST_F(RegionTest, RegionOfAnotherVersionIsNotMadeAnew) {
  {
    Region region = Make();
    region.header().version = 9;
  }
  EXPECT_EQ(ErrorOf([&] {
              Region::CreateOrAdopt(dir(), kName, RegionKind::kLearner, kBytes, kRun, kSpec);
            }).code(),
            ExitCode::kConfig);
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(RegionTest, UnlinkRemovesTheNameOnceAndNeverASuccessor) {
  Region region = Make();
  region.payload()[0] = std::byte{7};
  region.Unlink();
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_EQ(region.payload()[0], std::byte{7});
  const Region successor = Make();
  region.Unlink();
  EXPECT_TRUE(std::filesystem::exists(path()));
}

TEST_F(RegionTest, NamedTellsWhetherThePathStillMeansThisFile) {
  Region region = Make();
  EXPECT_TRUE(region.Named());
  region.Unlink();
  EXPECT_FALSE(region.Named());
  const Region successor = Make();
  EXPECT_FALSE(region.Named());
  EXPECT_TRUE(successor.Named());
}

TEST_F(RegionTest, TryUnlinkLeavesTheFileWhileAnotherProcessHoldsTheFolder) {
  Region region = Make();
  {
    const ShmDirLock lock(dir());
    EXPECT_FALSE(region.TryUnlink());
    EXPECT_TRUE(std::filesystem::exists(path()));
  }
  EXPECT_TRUE(region.TryUnlink());
  EXPECT_FALSE(std::filesystem::exists(path()));
  EXPECT_TRUE(region.TryUnlink());
}

TEST_F(RegionTest, WantOfOpenFilesIsForNowNotForGood) {
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "UBSan needs open files";
  {
    const Region region = Make();
  }
  const Error error = [&] {
    const testing::NoOpenFiles none;
    return AttachError();
  }();
  EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  EXPECT_THAT(error.what(), HasSubstr("ulimit -n"));
  EXPECT_EQ(AttachError().code(), ExitCode::kOk);
}

TEST_F(RegionTest, FileWithHolesIsRefusedBeforeItsMemoryIsAskedFor) {
  const int fd = open(path().c_str(), O_RDWR | O_CREAT, 0600);
  ASSERT_EQ(ftruncate(fd, 1 << 20), 0);  // zeros: no magic
  EXPECT_THAT(AttachError().what(), HasSubstr("not ready"));
  struct stat info = {};
  ASSERT_EQ(fstat(fd, &info), 0);
  EXPECT_EQ(info.st_blocks, 0);
  close(fd);
}

// In a mount namespace of its own with a 1 MiB tmpfs; exit status 0: as expected, 1: not, 77:
// denied.
int CreateOnFullTmpfs(const std::string& dir) {
  if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER) != 0) return 77;
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  if (mount("tmpfs", dir.c_str(), "tmpfs", 0, "size=1m,mode=0700") != 0) return 77;
  const Error error =
      ErrorOf([&] { Region::Create(dir, kName, RegionKind::kLearner, 8 << 20, kRun, kSpec); });
  const std::string text = error.what();
  std::fprintf(stderr, "%s\n", text.c_str());
  const bool told = error.code() == ExitCode::kTryAgain &&
                    text.find("8388608 bytes needed") != std::string::npos &&
                    text.find(" bytes free") != std::string::npos &&
                    text.find("driver_opts: o: size=") != std::string::npos;
  // What fits still works, and the failed attempt has left nothing behind.
  Region small = Region::Create(dir, kName, RegionKind::kLearner, 512 << 10, kRun, kSpec);
  std::memset(small.payload(), 1, (512 << 10) - 4096);
  return told ? 0 : 1;
}

TEST_F(RegionTest, FullFileSystemIsToldWithBytesNeededFreeAndTheSettingToRaise) {
  const pid_t child = fork();
  if (child == 0) _exit(CreateOnFullTmpfs(dir()));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this machine denies mount namespaces";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

Region MakeAnonymous(std::uint64_t bytes = kBytes) {
  return Region::CreateAnonymous(RegionKind::kRing, bytes, kRun, kSpec, "worker 3's ring");
}

TEST(AnonymousRegion, HoldsZeroedMemoryOfItsOwnerWithoutAFile) {
  Region region = MakeAnonymous();
  EXPECT_FALSE(region.sealed());
  region.Seal();
  EXPECT_TRUE(region.sealed() && region.is_owner() && region.OwnerAlive());
  EXPECT_EQ(region.size(), kBytes);
  EXPECT_EQ(region.header().spec_hash, kSpec);
  EXPECT_EQ(region.path(), "memory of worker 3's ring");
  for (std::uint64_t i = 0; i < kBytes - 4096; ++i) ASSERT_EQ(region.payload()[i], std::byte{0});
  EXPECT_FALSE(region.Named());
  region.Unlink();
  EXPECT_TRUE(region.TryUnlink());
  region.payload()[0] = std::byte{1};
}

TEST(AnonymousRegion, KeepsNoDescriptor) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  const Region region = MakeAnonymous();
  EXPECT_EQ(open_files(), before);
}

TEST(AnonymousRegion, NamesBothSizesWhenMemoryIsShort) {
  const Error error = ErrorOf([] { MakeAnonymous(std::uint64_t{1} << 60); });
  EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  EXPECT_THAT(error.what(), AllOf(HasSubstr("memory of worker 3's ring"),
                                  HasSubstr("1152921504606846976 bytes needed"),
                                  HasSubstr("bytes available"), HasSubstr("--ring-rows")));
}

TEST(AnonymousRegion, SaysWhichLimitWithoutAFreeDescriptor) {
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "a sanitizer opens files of its own";
  const testing::NoOpenFiles no_files;
  const Error error = ErrorOf([] { MakeAnonymous(); });
  EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  EXPECT_THAT(error.what(), HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace tetrion
