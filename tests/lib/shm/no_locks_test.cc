#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "lib/core/clock.h"
#include "lib/shm/region.h"
#include "lib/shm/shm_dir.h"
#include "tests/lib/shm/scratch_dir.h"

// A file system without locks (Lustre or NFS as some mount them): every start says so at once.
namespace {

std::atomic<int> refused_after{-1};  // calls that are let through; negative: all
std::atomic<int> refused_with{0};    // errno

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the C library's name.
extern "C" __attribute__((visibility("default"))) int flock(int fd, int operation) noexcept {
  if (refused_after < 0 || (operation & LOCK_UN) != 0 || refused_after-- > 0) {
    return static_cast<int>(syscall(SYS_flock, fd, operation));
  }
  refused_after = 0;
  errno = refused_with;
  return -1;
}

namespace tetrion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kBytes = 8192;

class NoLocksTest : public ::testing::Test {
 protected:
  ~NoLocksTest() override { refused_after = -1; }
  static void Refuse(int calls_before, int error) {
    refused_with = error;
    refused_after = calls_before;
  }
  Region CreateOrAdopt() const {
    return Region::CreateOrAdopt(scratch_.path(), "r", RegionKind::kRing, kBytes, 1, 2);
  }

  const ScratchDir scratch_;
  const std::string region_ = scratch_.path() + "/r";
};

TEST_F(NoLocksTest, FolderThatCannotBeLockedIsRefusedAtOnceWithTheReason) {
  const Deadline late = Deadline::AfterMs(10'000);  // a held lock is waited for for 30 s
  for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP}) {
    Refuse(0, error);
    const Error refused = ErrorOf([&] { const ShmDirLock lock(scratch_.path()); });
    EXPECT_EQ(refused.code(), ExitCode::kUsage);
    EXPECT_THAT(refused.what(),
                AllOf(HasSubstr("cannot lock " + scratch_.path() + "/.lock: "),
                      HasSubstr(std::strerror(error)), HasSubstr("--shm-dir on a tmpfs")));
  }
  EXPECT_FALSE(late.Passed());
}

TEST_F(NoLocksTest, RegionThatCannotBeLockedIsNotBlamedOnAnOwner) {
  {
    Region region = CreateOrAdopt();
    region.Seal();
  }
  Refuse(1, ENOLCK);
  const Error refused = ErrorOf([&] { (void)CreateOrAdopt(); });
  EXPECT_EQ(refused.code(), ExitCode::kUsage);
  EXPECT_THAT(refused.what(), HasSubstr("cannot lock " + region_ + ": "));
}

TEST_F(NoLocksTest, RegionThatAStrangerLocksAtBirthEndsTheStartAndLeavesNoFile) {
  Refuse(1, EWOULDBLOCK);
  const Error refused = ErrorOf([&] { (void)CreateOrAdopt(); });
  EXPECT_EQ(refused.code(), ExitCode::kTryAgain);
  EXPECT_THAT(refused.what(), HasSubstr("another process locked " + region_));
  EXPECT_FALSE(std::filesystem::exists(region_));
}

}  // namespace
}  // namespace tetrion
