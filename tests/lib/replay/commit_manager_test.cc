#include "lib/replay/commit_manager.h"

#include <gtest/gtest.h>

namespace tetrion {
namespace {

// Writes one row the way a ring does: reclaim, write, commit when due.
void WriteRow(CommitManager& commit) {
  commit.Reclaim();
  commit.Wrote(1);
  if (commit.CommitDue()) commit.Commit();
}

TEST(CommitManagerTest, CommitsOncePerStride) {
  CommitManager commit(32, 8, 0);
  for (std::uint64_t row = 1; row <= 40; ++row) {
    WriteRow(commit);
    EXPECT_EQ(commit.written(), row);
    EXPECT_EQ(commit.committed(), row / 8 * 8);
  }
}

TEST(CommitManagerTest, SafeMaxTStaysTheMarginBelowTheCommittedHead) {
  CommitManager commit(32, 4, 6);
  EXPECT_EQ(commit.SafeMaxT(), 0U);
  for (int row = 0; row < 4; ++row) WriteRow(commit);
  EXPECT_EQ(commit.SafeMaxT(), 0U);  // 4 - 6 does not wrap below zero
  for (int row = 0; row < 8; ++row) WriteRow(commit);
  EXPECT_EQ(commit.SafeMaxT(), 6U);
}

TEST(CommitManagerTest, RowsDieOnlyWhenTheirSlotIsAboutToBeTaken) {
  CommitManager commit(16, 4, 0);
  for (int row = 0; row < 16; ++row) WriteRow(commit);
  EXPECT_EQ(commit.valid_lo(), 0U);
  EXPECT_EQ(commit.DeadBelow(), 4U);  // the next chunk takes the slots of rows 0..3
  WriteRow(commit);
  EXPECT_EQ(commit.valid_lo(), 4U);
  for (int row = 0; row < 3; ++row) WriteRow(commit);
  EXPECT_EQ(commit.valid_lo(), 4U);
  WriteRow(commit);
  EXPECT_EQ(commit.valid_lo(), 8U);
}

TEST(CommitManagerTest, FlushedPartialChunkIsACommitOfItsOwn) {
  CommitManager commit(32, 8, 0);
  for (int row = 0; row < 3; ++row) WriteRow(commit);
  commit.Commit();
  EXPECT_EQ(commit.committed(), 3U);
  commit.Commit();  // nothing new
  EXPECT_EQ(commit.committed(), 3U);
  for (int row = 0; row < 5; ++row) WriteRow(commit);
  EXPECT_EQ(commit.committed(), 8U);  // the rest of the chunk commits at its end
  EXPECT_EQ(commit.ChunkEnd(), 16U);
}

TEST(CommitManagerDeathTest, WritingWithoutReclaimIsABug) {
  CommitManager commit(16, 8, 0);
  for (int row = 0; row < 16; ++row) WriteRow(commit);
  EXPECT_DEATH(commit.Wrote(1), "Reclaim");
  EXPECT_DEATH(CommitManager(10, 4, 0), "divide");
  EXPECT_DEATH(CommitManager(8, 4, 1), "margin");
}

}  // namespace
}  // namespace tetrion
