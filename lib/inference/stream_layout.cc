#include "lib/inference/stream_layout.h"

#include "lib/core/check.h"

namespace tetrion {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

// Identifies the layout of the small rings' records.
constexpr std::uint64_t kSmallRingHash = (std::uint64_t{kStreamMagic} << 32) | kStreamVersion;

}  // namespace

StreamLayout::StreamLayout(const RowLayout& row_layout, std::uint64_t rows)
    : row(row_layout),
      obs{.capacity = rows, .record_bytes = row.row_bytes, .spec_hash = row.Hash()},
      command{.capacity = kStreamCommands,
              .record_bytes = sizeof(StreamCommand),
              .spec_hash = kSmallRingHash},
      response{.capacity = kStreamCommands,
               .record_bytes = sizeof(StreamResponse),
               .spec_hash = kSmallRingHash},
      action{.capacity = rows,
             .record_bytes =
                 sizeof(ActionRecord) + row.spec.lanes * (sizeof(std::int32_t) + sizeof(float)),
             .spec_hash = row.Hash()},
      block(AlignUp(RingMemoryBytes(obs), kPageBytes)),
      command_ring(block + kStreamBlockBytes),
      response_ring(AlignUp(command_ring + RingMemoryBytes(command), kPageBytes)),
      action_ring(AlignUp(response_ring + RingMemoryBytes(response), kPageBytes)),
      region_bytes(kRegionHeaderBytes + AlignUp(action_ring + RingMemoryBytes(action), kPageBytes)),
      log_probs(actions + row.spec.lanes * sizeof(std::int32_t)) {
  TETRION_CHECK(IsPowerOfTwo(rows), "a ring's capacity is a power of two");
}

}  // namespace tetrion
