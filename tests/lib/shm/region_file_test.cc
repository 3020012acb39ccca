#include "lib/shm/region_file.h"

#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <functional>

#include "tests/lib/core/stand_in_root.h"
#include "tests/lib/shm/scratch_dir.h"

namespace tetrion {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kBytes = 1 << 20;

class AllocationTest : public testing::StandInRoot {
 protected:
  AllocationTest() {
    Write("/proc/meminfo", "MemAvailable: 8192 kB\n");
    MountV2("/", "/pod");
  }
  void Limit(std::uint64_t limit, std::uint64_t used) const {
    Write("/sys/fs/cgroup/pod/memory.max", std::to_string(limit));
    Write("/sys/fs/cgroup/pod/memory.current", std::to_string(used));
  }
  // The refusal; empty: there was none.
  static std::string RefusalOf(const std::function<void()>& call) {
    const Error error = ErrorOf(call);
    EXPECT_TRUE(error.code() == ExitCode::kTryAgain || error.code() == ExitCode::kOk);
    return error.what();
  }
  std::string Allocate(std::uint64_t bytes) const {
    return RefusalOf(
        [&] { AllocateMemory(file_.get(), "memory of worker 3's ring", bytes, root_); });
  }
  std::int64_t SizeBytes() const {
    struct stat status = {};
    return fstat(file_.get(), &status) == 0 ? status.st_size : -1;
  }

  FileDescriptor file_{memfd_create("region_file_test", MFD_CLOEXEC)};
};

TEST_F(AllocationTest, GroupsLimitIsNamedBeforeAPageIsTouched) {
  Limit(4 * kBytes, 3 * kBytes + 1);
  EXPECT_THAT(Allocate(kBytes),
              AllOf(HasSubstr("memory of worker 3's ring: 1048576 bytes needed, 1048575 bytes "
                              "available below the limit of 4194304 bytes of the control group " +
                              root_ + "/sys/fs/cgroup/pod"),
                    HasSubstr("raise that limit"), HasSubstr("--ring-rows")));
  EXPECT_EQ(SizeBytes(), 0);
  Limit(4 * kBytes, 3 * kBytes);
  EXPECT_EQ(Allocate(kBytes), "");
  EXPECT_EQ(SizeBytes(), std::int64_t{kBytes});
}

TEST_F(AllocationTest, MachineWithLessThanTheGroupIsNotBlamedOnTheGroup) {
  Limit(16 * kBytes, 0);
  EXPECT_THAT(Allocate(9 * kBytes),
              AllOf(HasSubstr("9437184 bytes needed, 8388608 bytes available: "),
                    HasSubstr("free memory"), Not(HasSubstr("control group"))));
  EXPECT_EQ(SizeBytes(), 0);
}

// Their pages are the group's memory, too: the killer would come while they are made.
TEST_F(AllocationTest, FileOfATmpfsIsHeldAgainstTheGroupsLimitAsMemoryIs) {
  const auto allocate = [this] { AllocateFile(file_.get(), "/dev/shm/r", kBytes, root_); };
  Limit(4 * kBytes, 3 * kBytes + 1);
  EXPECT_THAT(RefusalOf(allocate),
              AllOf(HasSubstr("shared region /dev/shm/r: 1048576 bytes needed, 1048575 bytes "
                              "available below the limit of 4194304 bytes of the control group"),
                    HasSubstr("raise that limit")));
  EXPECT_EQ(SizeBytes(), 0);
  Limit(4 * kBytes, 3 * kBytes);
  EXPECT_EQ(RefusalOf(allocate), "");
  EXPECT_EQ(SizeBytes(), std::int64_t{kBytes});
}

}  // namespace
}  // namespace tetrion
