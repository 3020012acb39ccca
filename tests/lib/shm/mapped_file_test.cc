#include "lib/shm/mapped_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/lib/shm/scratch_dir.h"

namespace tetrion {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kBytes = 64 * 1024;

class MappedFileTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name = "file") const { return scratch_.path() + "/" + name; }
  void Write(const std::string& text) const { std::ofstream(Path()) << text; }

  ScratchDir scratch_;
};

TEST_F(MappedFileTest, CreatedFileIsZeroedFullyAllocatedAndPrivate) {
  const MappedFile file = MappedFile::OpenOrCreate(Path(), kBytes, kBytes);
  ASSERT_EQ(file.bytes(), kBytes);
  EXPECT_EQ(file.path(), Path());
  for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(file.data()[i], std::byte{0});
  struct stat status = {};
  ASSERT_EQ(stat(Path().c_str(), &status), 0);
  EXPECT_EQ(status.st_size, static_cast<off_t>(kBytes));
  EXPECT_GE(status.st_blocks * 512, static_cast<off_t>(kBytes)) << "holes";
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

TEST_F(MappedFileTest, BothMappingsSeeTheSameBytesAndTheFileKeepsThem) {
  {
    const MappedFile one = MappedFile::OpenOrCreate(Path(), kBytes, kBytes);
    const MappedFile two = MappedFile::Open(Path(), kBytes);
    std::memcpy(one.data() + 100, "tetrion", 8);
    EXPECT_STREQ(reinterpret_cast<const char*>(two.data() + 100), "tetrion");
  }
  const MappedFile later = MappedFile::OpenOrCreate(Path(), kBytes, kBytes);
  EXPECT_STREQ(reinterpret_cast<const char*>(later.data() + 100), "tetrion");
}

TEST_F(MappedFileTest, LargerFileIsMappedWhole) {
  std::ofstream(Path()).close();
  std::filesystem::resize_file(Path(), 3 * kBytes);
  EXPECT_EQ(MappedFile::Open(Path(), kBytes).bytes(), 3 * kBytes);
  EXPECT_EQ(MappedFile::OpenOrCreate(Path(), kBytes, kBytes).bytes(), 3 * kBytes);
}

TEST_F(MappedFileTest, HolesOfAnExistingFileAreFilled) {
  std::ofstream(Path()).close();
  std::filesystem::resize_file(Path(), kBytes);
  const MappedFile file = MappedFile::Open(Path(), kBytes);
  struct stat status = {};
  ASSERT_EQ(stat(Path().c_str(), &status), 0);
  EXPECT_GE(status.st_blocks * 512, static_cast<off_t>(kBytes));
}

TEST_F(MappedFileTest, EmptyFileOfADeadCreatorIsFilledUp) {
  Write("");
  EXPECT_EQ(MappedFile::OpenOrCreate(Path(), kBytes, kBytes).bytes(), kBytes);
}

TEST_F(MappedFileTest, TooSmallFileIsRefusedWithBothSizesAndLeftAlone) {
  Write("short");
  for (const bool create : {false, true}) {
    const Error error = ErrorOf([&] {
      if (create) MappedFile::OpenOrCreate(Path(), kBytes, kBytes);
      if (!create) MappedFile::Open(Path(), kBytes);
    });
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("too small: 5 bytes, need at least 65536"));
  }
  EXPECT_EQ(std::filesystem::file_size(Path()), 5U);
}

TEST_F(MappedFileTest, MissingFileIsAMatterOfTime) {
  const Error error = ErrorOf([&] { MappedFile::Open(Path(), kBytes); });
  EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  EXPECT_THAT(error.what(), HasSubstr(Path()));
}

TEST_F(MappedFileTest, WhatIsNoFileCannotBeMapped) {
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(ErrorOf([&] { MappedFile::Open(Path("pipe"), kBytes); }).what(),
              HasSubstr("cannot be mapped"));
  const Error folder = ErrorOf([&] { MappedFile::OpenOrCreate(scratch_.path(), kBytes, kBytes); });
  EXPECT_EQ(folder.code(), ExitCode::kUsage);
  EXPECT_THAT(folder.what(), HasSubstr(scratch_.path()));
}

TEST_F(MappedFileTest, DeviceWithoutASizeIsMappedAsAsked) {
  // /dev/zero maps as anonymous memory: a device that can be mapped. /dev/null cannot.
  EXPECT_EQ(MappedFile::Open("/dev/zero", kBytes).bytes(), kBytes);
  EXPECT_EQ(MappedFile::Open("/dev/zero", kBytes, 2 * kBytes).bytes(), 2 * kBytes);
  EXPECT_EQ(MappedFile::OpenOrCreate("/dev/zero", 2 * kBytes, kBytes).bytes(), 2 * kBytes);
  const Error error = ErrorOf([] { MappedFile::Open("/dev/null", kBytes); });
  EXPECT_EQ(error.code(), ExitCode::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("cannot be mapped"));
}

TEST_F(MappedFileTest, FileWithoutPermissionIsRefusedByName) {
  Write("");
  ASSERT_EQ(chmod(Path().c_str(), 0400), 0);
  ASSERT_EQ(chmod(scratch_.path().c_str(), 0755), 0);
  // Root may open anything: be nobody for the moment.
  const uid_t me = geteuid();
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(seteuid(me == 0 ? kNobody : me), 0);
  const Error error = ErrorOf([&] { MappedFile::OpenOrCreate(Path(), kBytes, kBytes); });
  ASSERT_EQ(seteuid(me), 0);
  EXPECT_EQ(error.code(), ExitCode::kUsage);
  EXPECT_THAT(error.what(), HasSubstr("permission"));
}

TEST_F(MappedFileTest, ByteIsLockedOncePerOpenAndBytesAreIndependent) {
  MappedFile one = MappedFile::OpenOrCreate(Path(), kBytes, kBytes);
  MappedFile two = MappedFile::Open(Path(), kBytes);
  EXPECT_EQ(one.LockByte(0), ByteLock::kLocked);
  EXPECT_EQ(one.LockByte(0), ByteLock::kLocked);
  EXPECT_EQ(two.LockByte(0), ByteLock::kHeldElsewhere);
  EXPECT_EQ(two.LockByte(1), ByteLock::kLocked);
  EXPECT_EQ(one.LockByte(1), ByteLock::kHeldElsewhere);
}

TEST_F(MappedFileTest, LockEndsWithItsOwner) {
  MappedFile two = MappedFile::OpenOrCreate(Path(), kBytes, kBytes);
  {
    MappedFile one = MappedFile::Open(Path(), kBytes);
    ASSERT_EQ(one.LockByte(0), ByteLock::kLocked);
    const MappedFile moved = std::move(one);
    EXPECT_EQ(two.LockByte(0), ByteLock::kHeldElsewhere);
  }
  EXPECT_EQ(two.LockByte(0), ByteLock::kLocked);
}

TEST_F(MappedFileTest, LockEndsWithTheKilledProcess) {
  MappedFile file = MappedFile::OpenOrCreate(Path(), kBytes, kBytes);
  PausedChild child([&] {
    MappedFile own = MappedFile::Open(Path(), kBytes);
    if (own.LockByte(1) != ByteLock::kLocked) _exit(1);
    raise(SIGSTOP);
  });
  EXPECT_EQ(file.LockByte(1), ByteLock::kHeldElsewhere);
  child.Kill();
  EXPECT_EQ(file.LockByte(1), ByteLock::kLocked);
}

}  // namespace
}  // namespace tetrion
