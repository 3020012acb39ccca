#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/replay/batch_lanes.h"
#include "lib/replay/gate.h"
#include "lib/replay/host_block.h"
#include "lib/replay/latents.h"
#include "lib/replay/lease.h"
#include "lib/replay/row_generations.h"

namespace tetrion {

// The latents of a replay's rows in ordinary memory, S shards of Tcap rows, beside HostRows. A new
// row has none: the trainer writes them back.
//
// Thread roles: the holder of a chunk forgets, the holder of a lease gathers and scatters; the gate
// keeps the two apart.
class HostLatents {
 public:
  // Allocates everything; throws Error(kTryAgain) when memory is not there.
  HostLatents(const LatentSpec& spec, std::uint32_t lanes, int shards, std::uint64_t capacity_rows);

  std::uint64_t memory_bytes() const;
  // Rows of the chunk have no latents: before it is committed.
  void Forget(const Chunk& chunk);
  // The part's cells into `out`, columns left null aside.
  void Gather(const ReadLease& lease, const BatchPart& part, const LatentColumns& out) const;
  // `in` into the part's cells, which are valid from then on. CHECKs that their rows are there.
  void Scatter(const ReadLease& lease, const BatchPart& part, const LatentColumns& in);

 private:
  // Calls visit(cell of the memory, cell of the batch, lanes) for every run of lanes of each row.
  template <typename Visit>
  void ForEachRun(const ReadLease& lease, const BatchPart& part, const Visit& visit) const;
  std::size_t CellOf(int shard, std::uint64_t row) const;

  const LatentSpec spec_;
  const std::uint32_t lanes_;
  const std::uint64_t capacity_rows_;
  const std::size_t cells_;  // S * Tcap * M
  const HostBlock deter_block_, stoch_block_, valid_block_;
  std::uint16_t* const deter_;  // [S, Tcap, M, D] bf16
  std::uint8_t* const stoch_;   // [S, Tcap, M, S]
  std::uint8_t* const valid_;   // [S, Tcap, M] 0 or 1
  RowGenerations generations_;
};

}  // namespace tetrion
