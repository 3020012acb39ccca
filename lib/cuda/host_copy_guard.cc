#include "lib/cuda/host_copy_guard.h"

namespace tetrion::cuda {
namespace {

constexpr CopyDirection kHostDirections[] = {CopyDirection::kHostToDevice,
                                             CopyDirection::kDeviceToHost};
constexpr MemoryKind kHostKinds[] = {MemoryKind::kPageable, MemoryKind::kPinned};

std::uint64_t AllowedBytes(std::span<const AllowedCopies> allowed, CopyDirection direction,
                           MemoryKind kind, CopyPurpose purpose) {
  std::uint64_t bytes = 0;
  for (const AllowedCopies& copies : allowed) {
    if (copies.direction == direction && copies.kind == kind && copies.purpose == purpose) {
      bytes += copies.bytes;
    }
  }
  return bytes;
}

}  // namespace

std::vector<std::string> HostCopyGuard::Violations(std::span<const AllowedCopies> allowed) const {
  const Activity seen = Seen();
  std::vector<std::string> violations;
  if (seen.launches == 0) {
    violations.emplace_back("no kernel was launched: nothing was watched");
  }
  if (seen.waits > 0) {
    violations.push_back("the host waited " + std::to_string(seen.waits) + " times");
  }
  for (const CopyDirection direction : kHostDirections) {
    for (const MemoryKind kind : kHostKinds) {
      for (std::size_t p = 0; p < kCopyPurposes; ++p) {
        const auto purpose = static_cast<CopyPurpose>(p);
        const CopyCount& count = seen.Of(direction, kind, purpose);
        const std::uint64_t bytes = AllowedBytes(allowed, direction, kind, purpose);
        if (count.bytes == bytes) continue;
        violations.push_back(std::to_string(count.copies) + " copies of " + Name(kind) +
                             " memory " + Name(direction) + " for " + Name(purpose) + ", " +
                             std::to_string(count.bytes) + " bytes where " + std::to_string(bytes) +
                             " are allowed");
      }
    }
  }
  return violations;
}

}  // namespace tetrion::cuda
