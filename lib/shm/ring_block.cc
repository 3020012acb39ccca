#include "lib/shm/ring_block.h"

#include "lib/core/check.h"
#include "lib/shm/region_header.h"

namespace tetrion {

std::uint64_t RingMemoryBytes(const RingSpec& spec) {
  TETRION_CHECK(IsPowerOfTwo(spec.capacity) && spec.capacity <= kMaxRingCapacity,
                "ring capacity must be a power of two up to 2^31");
  TETRION_CHECK(spec.record_bytes > 0 && spec.record_bytes <= kMaxRingRecordBytes,
                "ring records must have 1 byte to 1 GiB");
  return kRingRecordsOffset + spec.capacity * RingStrideBytes(spec);
}

std::uint64_t RingRegionBytes(const RingSpec& spec) {
  return AlignUp(kRegionHeaderBytes + RingMemoryBytes(spec), kRegionHeaderBytes);
}

}  // namespace tetrion
