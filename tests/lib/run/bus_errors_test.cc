#include "lib/run/bus_errors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "lib/core/error.h"

namespace tetrion {
namespace {

constexpr int kTryAgain = static_cast<int>(ExitCode::kTryAgain);
constexpr std::size_t kPage = 4096;

// A file of two pages that is mapped whole and then cut off after the first.
class CutOffFile {
 public:
  CutOffFile() {
    const int fd = mkstemp(path_);
    EXPECT_EQ(ftruncate(fd, 2 * kPage), 0);
    bytes_ = static_cast<volatile char*>(
        mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    EXPECT_EQ(ftruncate(fd, kPage), 0);
    close(fd);
  }
  ~CutOffFile() {
    munmap(const_cast<char*>(bytes_), 2 * kPage);
    unlink(path_);
  }
  CutOffFile(const CutOffFile&) = delete;
  CutOffFile& operator=(const CutOffFile&) = delete;

  std::string path() const { return path_; }
  void TouchWhatIsThere() const { bytes_[0] = 1; }
  // A read: many threads may do it at once.
  void TouchWhatIsGone() const { static_cast<void>(bytes_[kPage]); }

 private:
  char path_[40] = "/tmp/tetrion cut off XXXXXX";
  volatile char* bytes_;
};

TEST(BusErrorsTest, BytesThatWereCutOffEndTheProgramWithTheFilesName) {
  const CutOffFile file;
  const std::string line = "tetrion-test: error: " + file.path() + " was cut off";
  EXPECT_EXIT(
      {
        TellBusErrors("tetrion-test");
        file.TouchWhatIsThere();
        file.TouchWhatIsGone();
      },
      ::testing::ExitedWithCode(kTryAgain), line);
}

TEST(BusErrorsTest, ManyThreadsThatMeetThemSayItOnce) {
  const CutOffFile file;
  EXPECT_EXIT(
      {
        TellBusErrors("tetrion-test");
        std::vector<std::thread> threads;
        for (int i = 0; i < 8; ++i) threads.emplace_back([&] { file.TouchWhatIsGone(); });
        for (std::thread& thread : threads) thread.join();
      },
      ::testing::ExitedWithCode(kTryAgain), "^tetrion-test: error: [^\n]*\n$");
}

TEST(BusErrorsTest, ProgramEndsThoughNobodyReadsItsLine) {
  const CutOffFile file;
  EXPECT_EXIT(
      {
        int ends[2];
        if (pipe2(ends, O_NONBLOCK) != 0) _exit(1);
        const std::vector<char> much(1 << 20);
        while (write(ends[1], much.data(), much.size()) > 0) {
        }  // until it is full
        fcntl(ends[1], F_SETFL, 0);
        dup2(ends[1], STDERR_FILENO);
        TellBusErrors("tetrion-test");
        file.TouchWhatIsGone();
      },
      ::testing::ExitedWithCode(kTryAgain), "");  // the line has no reader: any text will do
}

TEST(BusErrorsTest, OtherBusErrorsEndTheProgramAsEver) {
  EXPECT_EXIT(
      {
        TellBusErrors("tetrion-test");
        raise(SIGBUS);
      },
      ::testing::KilledBySignal(SIGBUS), "^$");
}

}  // namespace
}  // namespace tetrion
