#pragma once

#include <cstdint>

namespace tetrion {

// The counters of one replay shard: which rows are being written, which are committed, which are
// still there. Logical rows, 64-bit, monotonic, never wrapped; a row's slot is row mod capacity.
// Pure arithmetic without locks or memory: the ring that owns it synchronises, on host and CUDA
// alike.
//
// Invariants
//  1. valid_lo <= committed <= written <= committed + commit_stride.
//  2. written - valid_lo <= capacity: a row is written only after Reclaim gave up the row whose
//     slot it takes (the caller first waits for the leases that reach below DeadBelow).
//  3. Readers use rows in [valid_lo, SafeMaxT()) only.
class CommitManager {
 public:
  // CHECKs that commit_stride divides capacity_rows and that two chunks fit beside the margin.
  CommitManager(std::uint64_t capacity_rows, std::uint64_t commit_stride,
                std::uint64_t safety_margin_rows);

  std::uint64_t written() const { return written_; }
  std::uint64_t committed() const { return committed_; }
  std::uint64_t valid_lo() const { return valid_lo_; }
  // Rows below may be sampled.
  std::uint64_t SafeMaxT() const {
    return committed_ > safety_margin_rows_ ? committed_ - safety_margin_rows_ : 0;
  }
  // First row after the chunk that is being written.
  std::uint64_t ChunkEnd() const { return (written_ / commit_stride_ + 1) * commit_stride_; }
  // Rows below this die when the chunk is written.
  std::uint64_t DeadBelow() const {
    return ChunkEnd() > capacity_rows_ ? ChunkEnd() - capacity_rows_ : 0;
  }

  // Gives up the rows below DeadBelow: the chunk's slots may be written from here on.
  void Reclaim();
  // `rows` more rows of the reclaimed chunk hold their data. CHECKs that the chunk has room.
  void Wrote(std::uint64_t rows);
  // Is the chunk full?
  bool CommitDue() const { return written_ == committed_ + StrideLeft(); }
  // Makes everything written visible: a full chunk, or at a flush whatever is there.
  void Commit();

 private:
  // Rows from the last commit to the end of its chunk.
  std::uint64_t StrideLeft() const { return commit_stride_ - committed_ % commit_stride_; }

  const std::uint64_t capacity_rows_;
  const std::uint64_t commit_stride_;
  const std::uint64_t safety_margin_rows_;
  std::uint64_t written_ = 0;
  std::uint64_t committed_ = 0;
  std::uint64_t valid_lo_ = 0;
};

}  // namespace tetrion
