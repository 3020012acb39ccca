#pragma once

#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/cuda/device.h"
#include "lib/replay/cuda/gather_tile.h"
#include "lib/replay/gate.h"
#include "lib/replay/latents.h"
#include "lib/replay/row_generations.h"

namespace tetrion {

// Latents of one shard, as RowSlots: a plain value that kernels take.
struct LatentSlots {
  std::uint16_t* deter = nullptr;  // [Tcap, M, D] bf16
  std::uint8_t* stoch = nullptr;   // [Tcap, M, S]
  std::uint8_t* valid = nullptr;   // [Tcap, M] 0 or 1
  LatentSpec spec;
  std::uint64_t capacity_rows = 0;  // Tcap
  std::uint32_t lanes = 0;          // M
};

// The latents of a replay's rows in device memory, S shards of Tcap rows, beside DeviceRows. A new
// row has none: the learner writes them back, the collector may write them with the row.
//
// Everything is enqueued on the stream of the caller, who has the chunk or the lease.
class LatentRows {
 public:
  static std::uint64_t BytesOf(const LatentSpec& spec, std::uint32_t lanes, int shards,
                               std::uint64_t capacity_rows);
  // Allocates everything; throws Error(kTryAgain) when memory is short.
  LatentRows(const cuda::Device& device, const LatentSpec& spec, std::uint32_t lanes, int shards,
             std::uint64_t capacity_rows);

  LatentSlots Slots(int shard) const;
  // Rows of the chunk have no latents: before what fills the chunk.
  void Forget(const Chunk& chunk, cuda::Stream& writer);
  // CHECKs that the part's rows are there: before its tiles are scattered.
  void CheckThere(const ReadLease& lease, const BatchPart& part) const {
    generations_.CheckThere(lease, part);
  }
  // The tile's cells into `out`.
  void Gather(const GatherTile& tile, const LatentColumns& out, cuda::Stream& reader) const;
  // `in` into the tile's cells, which are valid from then on. Where windows overlap the last one's
  // are kept: of the tile, or of tiles that are scattered one after the other.
  void Scatter(const GatherTile& tile, const LatentColumns& in, cuda::Stream& reader) const;

 private:
  const LatentSpec spec_;
  const std::uint32_t lanes_;
  const std::uint64_t capacity_rows_;
  cuda::DeviceBuffer deter_, stoch_, valid_;
  RowGenerations generations_;  // in the order that the host enqueues
};

}  // namespace tetrion
