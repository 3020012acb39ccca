#include "lib/replay/commit_manager.h"

#include <algorithm>

#include "lib/core/check.h"

namespace tetrion {

CommitManager::CommitManager(std::uint64_t capacity_rows, std::uint64_t commit_stride,
                             std::uint64_t safety_margin_rows)
    : capacity_rows_(capacity_rows),
      commit_stride_(commit_stride),
      safety_margin_rows_(safety_margin_rows) {
  TETRION_CHECK(commit_stride > 0 && capacity_rows % commit_stride == 0,
                "commit_stride must divide the shard's capacity");
  TETRION_CHECK(capacity_rows >= safety_margin_rows + 2 * commit_stride,
                "a shard holds at least its safety margin and two chunks");
}

void CommitManager::Reclaim() {
  valid_lo_ = std::max(valid_lo_, DeadBelow());
}

void CommitManager::Wrote(std::uint64_t rows) {
  TETRION_CHECK(rows > 0 && written_ + rows <= ChunkEnd(), "rows of one chunk at a time");
  TETRION_CHECK(valid_lo_ >= DeadBelow(), "Reclaim before writing a chunk");
  written_ += rows;
  TETRION_CHECK(written_ - valid_lo_ <= capacity_rows_, "a live row was overwritten");
}

void CommitManager::Commit() {
  committed_ = written_;
}

}  // namespace tetrion
