#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>

#include "lib/shm/spsc_ring.h"

namespace tetrion {

// Zeroed memory for a ring within the process, exactly as large as it has to be (ASan sees a byte
// more).
class RingMemory {
 public:
  explicit RingMemory(const RingSpec& spec)
      : bytes_(AlignUp(RingMemoryBytes(spec), kCacheLinePairBytes)),
        memory_(static_cast<std::byte*>(std::aligned_alloc(kCacheLinePairBytes, bytes_))) {
    std::memset(memory_.get(), 0, bytes_);
  }
  std::byte* get() const { return memory_.get(); }
  RingBlock& block() const { return *reinterpret_cast<RingBlock*>(memory_.get()); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::uint64_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

}  // namespace tetrion
