#include "lib/wire/allow_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/core/error.h"
#include "tests/lib/wire/key_folder_for_test.h"

namespace tetrion::wire {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

class AllowListTest : public ::testing::Test {
 protected:
  AllowListTest() { folder_.Allow("first", first_); }
  static KeyBytes Bytes(const CurveKeys& keys) { return DecodeKey(keys.public_key); }

  const KeyFolder folder_;
  const CurveKeys first_ = CurveKeys::Make(), second_ = CurveKeys::Make();
};

TEST_F(AllowListTest, KeyOfAFileIsFoundUnderTheFilesName) {
  AllowList list(folder_.path());
  EXPECT_THAT(list.Find(Bytes(first_)), Optional(Eq("first")));
  EXPECT_EQ(list.Find(Bytes(second_)), std::nullopt);
}

TEST_F(AllowListTest, EmptyFolderAllowsNoKey) {
  const KeyFolder empty;
  AllowList list(empty.path());
  EXPECT_EQ(list.Find(Bytes(first_)), std::nullopt);
  EXPECT_EQ(list.size(), 0U);
}

TEST_F(AllowListTest, FolderThatIsNotThereIsAUsageError) {
  try {
    AllowList list(folder_.File("none"));
    FAIL() << "read a folder that is not there";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("none: No such file"));
    EXPECT_THAT(error.what(), HasSubstr("--curve-allow"));
  }
}

TEST_F(AllowListTest, AddedKeyIsAllowedAndARemovedOneRefusedAtTheNextQuestion) {
  AllowList list(folder_.path());
  folder_.Allow("second", second_);
  EXPECT_THAT(list.Find(Bytes(second_)), Optional(Eq("second")));
  folder_.Remove("first");
  EXPECT_EQ(list.Find(Bytes(first_)), std::nullopt);
  EXPECT_THAT(list.Find(Bytes(second_)), Optional(Eq("second")));
}

TEST_F(AllowListTest, ReplacedFileAllowsItsNewKeyOnly) {
  AllowList list(folder_.path());
  folder_.Allow("first", second_);
  EXPECT_EQ(list.Find(Bytes(first_)), std::nullopt);
  EXPECT_THAT(list.Find(Bytes(second_)), Optional(Eq("first")));
}

TEST_F(AllowListTest, BrokenFileIsIgnoredUntilItIsWhole) {
  folder_.Write("broken.pub", "tetrion curve public key\nhalf");
  AllowList list(folder_.path());
  EXPECT_EQ(list.size(), 1U);
  EXPECT_THAT(list.Find(Bytes(first_)), Optional(Eq("first")));
  folder_.Write("broken.pub", "tetrion curve public key\n" + second_.public_key + "\n");
  EXPECT_THAT(list.Find(Bytes(second_)), Optional(Eq("broken")));
}

TEST_F(AllowListTest, OtherFilesAndFoldersAreNoKeys) {
  folder_.Write("notes.txt", "tetrion curve public key\n" + second_.public_key + "\n");
  std::filesystem::create_directory(folder_.File("folder.pub"));
  folder_.Write(".pub", "tetrion curve public key\n" + second_.public_key + "\n");
  AllowList list(folder_.path());
  EXPECT_EQ(list.Find(Bytes(second_)), std::nullopt);
  EXPECT_EQ(list.size(), 1U);
}

TEST_F(AllowListTest, FolderThatGoesAllowsNoKeyUntilItIsBack) {
  AllowList list(folder_.path());
  const std::string aside = folder_.path() + "-aside";
  std::filesystem::rename(folder_.path(), aside);
  EXPECT_EQ(list.Find(Bytes(first_)), std::nullopt);
  std::filesystem::rename(aside, folder_.path());
  EXPECT_THAT(list.Find(Bytes(first_)), Optional(Eq("first")));
}

// What Kubernetes mounts: every file a link into a folder that is swapped as a whole.
TEST_F(AllowListTest, LinkedFolderIsFollowedWhenItIsSwapped) {
  namespace fs = std::filesystem;
  const KeyFolder mounted, old_keys, new_keys;
  old_keys.Allow("actor", first_);
  new_keys.Allow("actor", second_);
  fs::create_directory_symlink(old_keys.path(), mounted.File("..data"));
  fs::create_symlink("..data/actor.pub", mounted.File("actor.pub"));
  AllowList list(mounted.path());
  EXPECT_THAT(list.Find(Bytes(first_)), Optional(Eq("actor")));
  fs::create_directory_symlink(new_keys.path(), mounted.File("..next"));
  fs::rename(mounted.File("..next"), mounted.File("..data"));
  EXPECT_EQ(list.Find(Bytes(first_)), std::nullopt);
  EXPECT_THAT(list.Find(Bytes(second_)), Optional(Eq("actor")));
}

}  // namespace
}  // namespace tetrion::wire
