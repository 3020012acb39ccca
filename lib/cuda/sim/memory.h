#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lib/cuda/activity.h"

namespace tetrion::cuda::sim {

// The simulated device's memory, and the pinned memory of the host.
//
//   | pages that fault | front fill | data, 256-byte aligned | end fill | pages that fault |
//
// A buffer ends at pages that fault, but for up to 255 bytes, and begins up to 3,840 bytes behind
// others: both fills are checked in front of every part of an operation and behind it, in a kernel
// behind every block. What is allocated holds 0xFF (NaN, -1); what was freed faults, for as long as
// it is among the last kQuarantined. With AddressSanitizer device memory may be touched only while
// it is open, and the fills never.
//
// Not thread-safe; the simulator's mutex guards it.
class Memory {
 public:
  static constexpr std::size_t kAlignBytes = 256;
  static constexpr std::size_t kQuarantined = 256;
  static constexpr unsigned char kFresh = 0xFF;

  struct Buffer {
    std::size_t bytes = 0;
    MemoryKind kind = MemoryKind::kDevice;
    std::byte* mapping = nullptr;  // first page that faults
    std::size_t mapping_bytes = 0;
  };

  void set_limit(std::size_t device_bytes) { limit_bytes_ = device_bytes; }
  std::size_t limit() const { return limit_bytes_; }
  std::size_t free_bytes() const { return limit_bytes_ - used_bytes_; }

  // Null when the limit leaves too little. `bytes` is not 0.
  void* Allocate(std::size_t bytes, MemoryKind kind);
  void Free(void* data);
  // Host memory of others that is pinned for a while, by whole pages as on a device. False when a
  // page of it is pinned already.
  bool Pin(const void* data, std::size_t bytes);
  void Unpin(const void* data);
  MemoryKind KindOf(const void* data) const;
  // Whether [data, data + bytes) lies within one live buffer or pinned range of that kind.
  bool IsWithin(const void* data, std::size_t bytes, MemoryKind kind) const;

  // Lets operations touch device memory, and no longer.
  void Open();
  void Close();
  // What was written in front of a buffer or past its end, as the end of a sentence.
  std::optional<std::string> Overrun() const;
  // What an address that faulted was, as a sentence; nothing for one that was never ours.
  std::optional<std::string> Describe(const void* address) const;

 private:
  using Buffers = std::map<const std::byte*, Buffer>;  // by their first byte
  Buffers::const_iterator Containing(const void* data) const;
  bool IsWithinRange(const void* data, std::size_t bytes) const;

  Buffers live_;
  std::vector<std::pair<const std::byte*, Buffer>> freed_;  // oldest first
  std::map<const std::byte*, std::size_t> ranges_;          // bytes by their first
  std::size_t limit_bytes_ = 0;
  std::size_t used_bytes_ = 0;
};

}  // namespace tetrion::cuda::sim
