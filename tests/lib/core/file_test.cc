#include "lib/core/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

#include "lib/core/error.h"

namespace tetrion {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

bool IsOpen(int fd) {
  return fcntl(fd, F_GETFD) >= 0;
}

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

auto BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(FileDescriptorTest, ClosesOnceAndMovesWithItsOwner) {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  {
    FileDescriptor first(fd);
    FileDescriptor second(std::move(first));
    EXPECT_FALSE(first.valid());
    FileDescriptor third;
    EXPECT_FALSE(third.valid());
    third = std::move(second);
    EXPECT_EQ(third.get(), fd);
    EXPECT_TRUE(IsOpen(fd));
  }
  EXPECT_FALSE(IsOpen(fd));
}

TEST(FileDescriptorTest, WhatIsReleasedStaysOpen) {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(FileDescriptor(fd).Release(), fd);
  EXPECT_TRUE(IsOpen(fd));
  close(fd);
}

class FileTest : public ::testing::Test {
 protected:
  FileTest() : folder_((fs::temp_directory_path() / "tetrion-file-XXXXXX").string()) {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
  }
  ~FileTest() override { fs::remove_all(folder_); }
  std::ptrdiff_t Files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  std::string folder_;
};

TEST_F(FileTest, ReplacementIsSeenOnlyOnceItIsPlaced) {
  const std::string path = folder_ + "/file";
  WriteAtomically(path, "old");
  {
    FileReplacement file(path, ".part");
    ASSERT_TRUE(file.Create(0600));
    ASSERT_TRUE(file.Write(BytesOf("new")));
    ASSERT_TRUE(file.Sync());
    EXPECT_EQ(TextOf(path), "old");
    ASSERT_TRUE(file.Place());
    ASSERT_TRUE(file.SyncFolder());
  }
  EXPECT_EQ(TextOf(path), "new");
  EXPECT_EQ(Files(), 1);
}

TEST_F(FileTest, ReplacementThatIsNotPlacedLeavesNothing) {
  for (const char* suffix : {".part", FileReplacement::kUniqueSuffix}) {
    FileReplacement file(folder_ + "/file", suffix);
    ASSERT_TRUE(file.Create(0600));
    EXPECT_EQ(Files(), 1);
  }
  EXPECT_EQ(Files(), 0);
}

TEST_F(FileTest, WhatADeadWriterLeftIsOverwrittenAndALinkIsNotFollowed) {
  std::ofstream(folder_ + "/file.part") << "half of something longer";
  {
    FileReplacement file(folder_ + "/file", ".part");
    ASSERT_TRUE(file.Create(0600));
    ASSERT_TRUE(file.Write(BytesOf("whole")));
    ASSERT_TRUE(file.Place());
  }
  EXPECT_EQ(TextOf(folder_ + "/file"), "whole");
  fs::create_symlink(folder_ + "/elsewhere", folder_ + "/file.part");
  FileReplacement file(folder_ + "/file", ".part");
  EXPECT_FALSE(file.Create(0600));
  EXPECT_EQ(errno, ELOOP);
  EXPECT_FALSE(fs::exists(folder_ + "/elsewhere"));
}

TEST_F(FileTest, FolderOfAPathIsWhatIsSynced) {
  EXPECT_EQ(FileReplacement("file", ".part").folder(), ".");
  EXPECT_EQ(FileReplacement("/file", ".part").folder(), "/");
  EXPECT_EQ(FileReplacement("a/b/file", ".part").folder(), "a/b");
  EXPECT_FALSE(FileReplacement(folder_ + "/no/file", ".part").SyncFolder());
}

TEST_F(FileTest, AtomicallyWrittenFileIsReadableWhateverTheUmask) {
  const mode_t before = umask(0077);
  WriteAtomically(folder_ + "/file", "x");
  umask(before);
  struct stat info = {};
  ASSERT_EQ(stat((folder_ + "/file").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, mode_t{0644});
}

TEST_F(FileTest, KilledWriterLeavesNothingThatTheNextOneDoesNotTakeAway) {
  const std::string path = folder_ + "/file";
  for (int i = 0; i < 3; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit ten_bytes = {10, 10}, no_core = {0, 0};
      setrlimit(RLIMIT_FSIZE, &ten_bytes);
      setrlimit(RLIMIT_CORE, &no_core);
      signal(SIGXFSZ, SIG_DFL);  // a caller may ignore it, as Python does
      try {
        WriteAtomically(path, std::string(100, 'a'));  // killed in the middle
      } catch (...) {
      }
      _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
  }
  WriteAtomically(path, "whole");
  EXPECT_EQ(TextOf(path), "whole");
  EXPECT_EQ(Files(), 1) << "left-overs";
}

TEST_F(FileTest, ReadersOfAnAtomicallyWrittenFileNeverSeeHalfOfIt) {
  const std::string path = folder_ + "/file";
  WriteAtomically(path, std::string(100'000, 'a'));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i)
      WriteAtomically(path, std::string(100'000, i % 2 == 0 ? 'b' : 'a'));
    done.store(true);
  });
  int reads = 0;
  while (!done.load() || reads == 0) {
    const std::string text = TextOf(path);
    ASSERT_EQ(text.size(), 100'000U);
    ASSERT_EQ(text.find_first_not_of(text[0]), std::string::npos);
    ++reads;
  }
  writer.join();
  EXPECT_EQ(Files(), 1) << "left-overs";
}

TEST_F(FileTest, RestOfAFileIsAppendedHoweverLongItIs) {
  const std::string path = folder_ + "/file";
  WriteAtomically(path, "ab" + std::string(10'000, 'x'));
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(lseek(file.get(), 1, SEEK_SET), 1);
  std::string text = "a";
  EXPECT_TRUE(ReadRest(file.get(), text));
  EXPECT_EQ(text, "ab" + std::string(10'000, 'x'));
  const FileDescriptor folder(open(folder_.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(ReadRest(folder.get(), text));
  EXPECT_EQ(errno, EISDIR);
}

TEST(FileFaultTest, WhatAPersonHasToChangeIsToldFromWhatMayPass) {
  for (const int error : {ENOENT, EACCES, EROFS, ELOOP, EISDIR}) {
    EXPECT_EQ(CodeOfFault(error, ExitCode::kConfig), ExitCode::kConfig) << error;
  }
  for (const int error : {EMFILE, ENFILE, ENOMEM, EIO, ESTALE, ENOSPC, EDQUOT}) {
    EXPECT_EQ(CodeOfFault(error, ExitCode::kConfig), ExitCode::kTryAgain) << error;
  }
}

TEST(WantOfResourcesTest, IsNoMatterOfTheAddress) {
  for (const int want : {EMFILE, ENFILE, ENOMEM, ENOBUFS, ENOSPC}) {
    EXPECT_TRUE(IsWantOfResources(want)) << want;
  }
  for (const int other : {0, EADDRINUSE, EADDRNOTAVAIL, EACCES, ENODEV}) {
    EXPECT_FALSE(IsWantOfResources(other)) << other;
  }
}

TEST_F(FileTest, FailedWriteNamesThePathAndLeavesNothing) {
  fs::create_directory(folder_ + "/folder");
  for (const std::string& path : {folder_ + "/no/file", folder_ + "/folder"}) {
    try {
      WriteAtomically(path, "x");
      FAIL() << "expected an Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kTryAgain);
      EXPECT_THAT(error.what(), HasSubstr("cannot write " + path + ": "));
    }
  }
  EXPECT_EQ(Files(), 1);
}

}  // namespace
}  // namespace tetrion
