#include "lib/wire/remote_path.h"

#include <gtest/gtest.h>

namespace tetrion::wire {
namespace {

TEST(RemotePathTest, ProcessAndWorkerComeBack) {
  const std::string path = RemoteRingPath(0x7fffffffffffffff, 255);
  EXPECT_EQ(path, "remote:7fffffffffffffff.255");
  std::uint64_t process = 0;
  std::uint32_t worker = 0;
  ASSERT_TRUE(IsRemoteRingPath(path, &process, &worker));
  EXPECT_EQ(process, 0x7fffffffffffffffU);
  EXPECT_EQ(worker, 255U);
  EXPECT_TRUE(IsRemoteRingPath(RemoteRingPath(0, 0)));
}

TEST(RemotePathTest, OnlyTheOneSpellingIsAccepted) {
  for (const char* path :
       {"", "remote:", "/dev/shm/ring", "remote:7fffffffffffffff", "remote:7fffffffffffffff.",
        "remote:7FFFFFFFFFFFFFFF.1", "remote:7fffffffffffffff.01", "remote:7fffffffffffffff.1 ",
        "remote:7fffffffffffffff.-1", "remote:7fffffffffffffff.4294967296", "remote:7.1",
        "remote: 00000000000000a.1", "Remote:0000000000000001.1", "remote:000000000000000g.1"}) {
    EXPECT_FALSE(IsRemoteRingPath(path)) << path;
  }
}

}  // namespace
}  // namespace tetrion::wire
