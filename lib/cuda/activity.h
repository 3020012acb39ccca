#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "lib/core/mutex.h"

// Counts of what the host asked of devices: copies, kernel launches, waits. Kept by device.h, read
// by host_copy_guard.h.

namespace tetrion::cuda {

// What stands at the host's end of a copy; kDevice when neither end is the host's.
enum class MemoryKind : std::uint8_t { kPageable, kPinned, kDevice };
enum class CopyDirection : std::uint8_t { kHostToDevice, kDeviceToHost, kOnDevice };
// Why a copy is made. Every copy names one, so that a path that must be free of host copies can be
// told from those that are made once, or once a second.
enum class CopyPurpose : std::uint8_t {
  kSetUp,    // once, before work begins
  kIngest,   // rows on their way into a replay
  kBatch,    // sampled rows for a trainer on the host
  kWeights,  // a policy's parameters, once a publication
  kAccount,  // tokens and ended episodes
};
inline constexpr std::size_t kMemoryKinds = 3, kCopyDirections = 3, kCopyPurposes = 5;

const char* Name(MemoryKind kind);
const char* Name(CopyDirection direction);
const char* Name(CopyPurpose purpose);

struct CopyCount {
  std::uint64_t copies = 0;
  std::uint64_t bytes = 0;
};

// Sums over a span of time. Waits are the host's waits for a stream or an event; streams that wait
// for events cost the host nothing and are not counted.
struct Activity {
  std::uint64_t launches = 0;
  std::uint64_t waits = 0;
  // [direction][kind][purpose]
  std::array<std::array<std::array<CopyCount, kCopyPurposes>, kMemoryKinds>, kCopyDirections>
      copies = {};

  CopyCount& Of(CopyDirection direction, MemoryKind kind, CopyPurpose purpose);
  const CopyCount& Of(CopyDirection direction, MemoryKind kind, CopyPurpose purpose) const;
  void Add(const Activity& other);
  Activity Since(const Activity& earlier) const;
};

// The process's sums since its start. Any thread.
class ActivityLog {
 public:
  void Add(const Activity& activity);
  Activity Read() const;

 private:
  mutable Mutex mu_;
  Activity sums_ TETRION_GUARDED_BY(mu_);
};

ActivityLog& ProcessActivity();

}  // namespace tetrion::cuda
