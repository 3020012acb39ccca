#pragma once

#include <cstdint>

namespace tetrion::coordinator {

// Policy versions of the learner, reserved in committed blocks so that a version never goes down,
// also not over a crash of either side. A limit is told only once its reservation is committed.
class VersionBlocks {
 public:
  VersionBlocks(std::uint32_t first, std::uint32_t limit)
      : first_(first), limit_(limit), promised_(limit) {}

  std::uint32_t first() const { return first_; }  // of the present learner
  std::uint32_t limit() const { return limit_; }  // end of the last block reserved
  // A new learner starts where the last block ends; it is told its first block with its session.
  void Begin() {
    first_ = limit_;
    limit_ += kBlock;
  }
  // The learner is near the end of its block.
  bool NeedsMore(std::uint32_t version) const { return std::uint64_t{version} + kReserve > limit_; }
  // Reserves a further block unless one is on its way to the store.
  bool Extend(std::uint64_t committed) {
    if (Promised(committed) != limit_) return false;
    limit_ += kBlock;
    return true;
  }
  // Begin or Extend is in the change with this ticket.
  void PersistedBy(std::uint64_t ticket) { ticket_ = ticket; }
  // The newest limit that is committed.
  std::uint32_t Promised(std::uint64_t committed) {
    if (ticket_ <= committed) promised_ = limit_;
    return promised_;
  }

 private:
  static constexpr std::uint32_t kBlock = 1000;
  static constexpr std::uint32_t kReserve = 500;  // left of the block when the next is reserved

  std::uint32_t first_, limit_, promised_;
  std::uint64_t ticket_ = 0;
};

}  // namespace tetrion::coordinator
