#include "lib/cuda/activity.h"

namespace tetrion::cuda {
namespace {

// Applies `change` to every pair of counts of the two.
template <typename Change>
void ForEachCount(Activity& to, const Activity& from, const Change& change) {
  change(to.launches, from.launches);
  change(to.waits, from.waits);
  for (std::size_t d = 0; d < kCopyDirections; ++d) {
    for (std::size_t k = 0; k < kMemoryKinds; ++k) {
      for (std::size_t p = 0; p < kCopyPurposes; ++p) {
        change(to.copies[d][k][p].copies, from.copies[d][k][p].copies);
        change(to.copies[d][k][p].bytes, from.copies[d][k][p].bytes);
      }
    }
  }
}

}  // namespace

const char* Name(MemoryKind kind) {
  constexpr const char* kNames[kMemoryKinds] = {"pageable", "pinned", "device"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* Name(CopyDirection direction) {
  constexpr const char* kNames[kCopyDirections] = {"host to device", "device to host",
                                                   "on the device"};
  return kNames[static_cast<std::size_t>(direction)];
}

const char* Name(CopyPurpose purpose) {
  constexpr const char* kNames[kCopyPurposes] = {"set-up", "ingest", "batch", "weights", "account"};
  return kNames[static_cast<std::size_t>(purpose)];
}

CopyCount& Activity::Of(CopyDirection direction, MemoryKind kind, CopyPurpose purpose) {
  return copies[static_cast<std::size_t>(direction)][static_cast<std::size_t>(kind)]
               [static_cast<std::size_t>(purpose)];
}

const CopyCount& Activity::Of(CopyDirection direction, MemoryKind kind, CopyPurpose purpose) const {
  return copies[static_cast<std::size_t>(direction)][static_cast<std::size_t>(kind)]
               [static_cast<std::size_t>(purpose)];
}

void Activity::Add(const Activity& other) {
  ForEachCount(*this, other, [](std::uint64_t& to, std::uint64_t from) { to += from; });
}

Activity Activity::Since(const Activity& earlier) const {
  Activity difference = *this;
  ForEachCount(difference, earlier, [](std::uint64_t& to, std::uint64_t from) { to -= from; });
  return difference;
}

void ActivityLog::Add(const Activity& activity) {
  const MutexLock lock(mu_);
  sums_.Add(activity);
}

Activity ActivityLog::Read() const {
  const MutexLock lock(mu_);
  return sums_;
}

ActivityLog& ProcessActivity() {
  static ActivityLog log;
  return log;
}

}  // namespace tetrion::cuda
