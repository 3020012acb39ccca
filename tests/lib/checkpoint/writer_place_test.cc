#include "lib/checkpoint/writer_place.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/lib/shm/scratch_dir.h"
#include "tests/support/no_open_files.h"

namespace tetrion {
namespace {

constexpr std::int64_t kNoWait = 0;

TEST(WriterPlaceTest, TurnsOfTheOneThatTookThePlaceGoOneAfterTheOther) {
  const ScratchDir dir;
  WriterPlace place(dir.path());
  ASSERT_TRUE(place.Take());
  for (int turn = 0; turn < 3; ++turn) EXPECT_TRUE(place.BeginTurn().valid());
}

TEST(WriterPlaceTest, ThePlaceIsOfTheLastThatTookIt) {
  const ScratchDir dir;
  WriterPlace first(dir.path()), second(dir.path());
  ASSERT_TRUE(first.Take());
  ASSERT_TRUE(second.Take());
  EXPECT_THROW((void)first.BeginTurn(), PlaceTaken);
  EXPECT_TRUE(second.BeginTurn().valid());
  ASSERT_TRUE(first.Take());  // it has begun anew
  EXPECT_TRUE(first.BeginTurn().valid());
  EXPECT_THROW((void)second.BeginTurn(), PlaceTaken);
}

TEST(WriterPlaceTest, TheReasonNamesTheFileAndWhatIsLost) {
  const ScratchDir dir;
  WriterPlace first(dir.path()), second(dir.path());
  ASSERT_TRUE(first.Take());
  ASSERT_TRUE(second.Take());
  const Error error = ErrorOf([&] { (void)first.BeginTurn(); });
  EXPECT_EQ(error.code(), ExitCode::kTryAgain);
  EXPECT_NE(std::string(error.what()).find(dir.path() + "/writer"), std::string::npos);
  EXPECT_NE(std::string(error.what()).find("is given up"), std::string::npos);
}

TEST(WriterPlaceTest, ATurnThatDoesNotEndIsWaitedForNoLongerThanSaid) {
  const ScratchDir dir;
  WriterPlace first(dir.path()), second(dir.path(), kNoWait);
  ASSERT_TRUE(first.Take());
  {
    const FileDescriptor turn = first.BeginTurn();
    EXPECT_EQ(ErrorOf([&] { (void)second.Take(); }).code(), ExitCode::kTryAgain);
  }
  EXPECT_TRUE(second.Take());
}

TEST(WriterPlaceTest, WhereNobodyTookThePlaceTurnsAreFreeAndLeaveNothing) {
  const ScratchDir dir;
  WriterPlace place(dir.path());
  EXPECT_FALSE(place.BeginTurn().valid());
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

TEST(WriterPlaceTest, APlaceThatCouldNotBeTakenIsTakenByTheNextTurn) {
  const ScratchDir dir;
  const std::string folder = dir.path() + "/checkpoints";
  WriterPlace place(folder);
  EXPECT_FALSE(place.Take());  // no such folder
  EXPECT_EQ(ErrorOf([&] { (void)place.BeginTurn(); }).code(), ExitCode::kTryAgain);
  std::filesystem::create_directory(folder);
  EXPECT_TRUE(place.BeginTurn().valid());
  WriterPlace other(folder);
  ASSERT_TRUE(other.Take());
  EXPECT_THROW((void)place.BeginTurn(), PlaceTaken);
}

TEST(WriterPlaceTest, APlaceThatCouldNotBeTakenIsNotTakenBackFromALaterOne) {
  const ScratchDir dir;
  const std::string folder = dir.path() + "/checkpoints";
  WriterPlace early(folder), late(folder);
  EXPECT_FALSE(early.Take());  // no such folder
  std::filesystem::create_directory(folder);
  ASSERT_TRUE(late.Take());
  EXPECT_THROW((void)early.BeginTurn(), PlaceTaken);
  EXPECT_TRUE(late.BeginTurn().valid());
}

// Who has the place is not known then: the predecessor's turns would look like a successor's.
TEST(WriterPlaceTest, APlaceThatCannotBeLookedAtIsNotTaken) {
  if (!testing::kCanForbidFiles) GTEST_SKIP() << "UBSan needs open files";
  const ScratchDir dir;
  WriterPlace first(dir.path()), second(dir.path());
  ASSERT_TRUE(first.Take());
  {
    const testing::NoOpenFiles none;
    EXPECT_EQ(ErrorOf([&] { (void)second.Take(); }).code(), ExitCode::kTryAgain);
  }
  EXPECT_TRUE(first.BeginTurn().valid());
  ASSERT_TRUE(second.Take());
  EXPECT_TRUE(second.BeginTurn().valid());
}

TEST(WriterPlaceTest, AFileThatWasRemovedOrEmptiedIsTakenAgain) {
  const ScratchDir dir;
  const std::string file = dir.path() + "/writer";
  WriterPlace place(dir.path());
  ASSERT_TRUE(place.Take());
  std::filesystem::resize_file(file, 0);
  EXPECT_TRUE(place.BeginTurn().valid());
  std::filesystem::remove(file);
  EXPECT_TRUE(place.BeginTurn().valid());
  EXPECT_TRUE(place.BeginTurn().valid());
  std::filesystem::remove(file);
  WriterPlace later(dir.path());
  ASSERT_TRUE(later.Take());
  EXPECT_THROW((void)place.BeginTurn(), PlaceTaken) << "another has taken it meanwhile";
  EXPECT_TRUE(later.BeginTurn().valid());
}

}  // namespace
}  // namespace tetrion
