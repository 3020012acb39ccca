#include "services/common/told_folders.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "lib/core/error.h"
#include "lib/shm/shm_dir.h"
#include "lib/wire/messages.h"

namespace tetrion {
namespace {

// What is wrong with the folder; "" where nothing is.
template <typename Check>
std::string Refusal(Check check, const std::string& folder) {
  try {
    static_cast<void>(check(folder), 0);
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    return error.what();
  }
}

std::string FolderOf(std::size_t bytes) {
  std::string folder;
  while (folder.size() < bytes) folder += "/deeper";
  folder.resize(bytes);
  if (folder.back() == '/') folder.back() = 'r';
  return folder;
}

TEST(ToldFoldersTest, RunsFolderIsAsLongAsAMessageTakes) {
  EXPECT_EQ(Refusal(CheckRunFolder, FolderOf(wire::kMaxFolderBytes)), "");
  EXPECT_EQ(Refusal(CheckRunFolder, FolderOf(wire::kMaxFolderBytes + 1)),
            "--runs-dir: the path of the run's folder has 513 bytes, at most 512 are possible: "
            "choose a folder with a shorter one");
}

TEST(ToldFoldersTest, PathOfARingFitsIntoAMessage) {
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  const std::string ring =
      "/" + StreamName(~std::uint64_t{0}, std::numeric_limits<std::int32_t>::max(), kMost, kMost);
  const std::size_t most = wire::kMaxRingPathBytes - ring.size();
  EXPECT_EQ(Refusal(ToldShmDir, FolderOf(most)), "");
  EXPECT_EQ(Refusal(ToldShmDir, FolderOf(most + 1)).find("--shm-dir: the path"), 0U);
}

// Members of other working folders open it, and compare what they were given with it.
TEST(ToldFoldersTest, SharedFolderIsToldAsEveryProcessNamesIt) {
  const std::string here = std::filesystem::current_path();
  EXPECT_EQ(ToldShmDir("shm"), here + "/shm");
  EXPECT_EQ(ToldShmDir("./a/../shm//"), here + "/shm");
  EXPECT_EQ(ToldShmDir("/dev/shm/x/"), "/dev/shm/x");
  EXPECT_EQ(ToldShmDir("/"), "/");
}

TEST(ToldFoldersTest, PathIsText) {
  EXPECT_EQ(Refusal(CheckRunFolder, "/r\xc3\xa4ume"), "");
  for (const char* odd : {"/r\xe4ume", "/a\nb"}) {
    EXPECT_NE(Refusal(CheckRunFolder, odd).find("--runs-dir"), std::string::npos);
    EXPECT_NE(Refusal(ToldShmDir, odd).find("--shm-dir"), std::string::npos);
  }
}

}  // namespace
}  // namespace tetrion
