#include "lib/replay/host_latents.h"

#include <cstring>

#include "lib/core/check.h"

namespace tetrion {
namespace {

constexpr const char* kWhat = "latents of the replay";

// `cells` cells of `width` values each, from one column to another.
template <typename Value>
void CopyCells(Value* to, std::size_t to_cell, const Value* from, std::size_t from_cell,
               std::size_t width, std::size_t cells) {
  std::memcpy(to + to_cell * width, from + from_cell * width, cells * width * sizeof(Value));
}

}  // namespace

HostLatents::HostLatents(const LatentSpec& spec, std::uint32_t lanes, int shards,
                         std::uint64_t capacity_rows)
    : spec_(spec),
      lanes_(lanes),
      capacity_rows_(capacity_rows),
      cells_(static_cast<std::size_t>(shards) * capacity_rows * lanes),
      deter_block_(cells_ * spec.deter * sizeof(std::uint16_t), kWhat),
      stoch_block_(cells_ * spec.stoch, kWhat),
      valid_block_(cells_, kWhat),
      deter_(reinterpret_cast<std::uint16_t*>(deter_block_.data())),
      stoch_(reinterpret_cast<std::uint8_t*>(stoch_block_.data())),
      valid_(reinterpret_cast<std::uint8_t*>(valid_block_.data())),
      generations_(shards, capacity_rows) {}

std::uint64_t HostLatents::memory_bytes() const {
  return cells_ * (spec_.deter * sizeof(std::uint16_t) + spec_.stoch + 1);
}

std::size_t HostLatents::CellOf(int shard, std::uint64_t row) const {
  return (static_cast<std::size_t>(shard) * capacity_rows_ + row % capacity_rows_) * lanes_;
}

void HostLatents::Forget(const Chunk& chunk) {
  std::memset(valid_ + CellOf(chunk.shard, chunk.first), 0,
              static_cast<std::size_t>(chunk.rows) * lanes_);
  generations_.Write(chunk);
}

template <typename Visit>
void HostLatents::ForEachRun(const ReadLease& lease, const BatchPart& part,
                             const Visit& visit) const {
  TETRION_CHECK(part.first_row >= 0 && part.first_row + part.rows <= lease.rows(),
                "the batch has fewer rows");
  const auto first = static_cast<std::uint64_t>(part.first_row);
  const auto batch_lanes = static_cast<std::size_t>(part.lanes);
  ForEachLaneRun(lease, static_cast<int>(lanes_), part.first_lane, part.lanes,
                 [&](const LaneRun& run) {
                   for (std::size_t t = 0; t < static_cast<std::size_t>(part.rows); ++t) {
                     const std::size_t row = CellOf(run.window.shard, run.window.start + first + t);
                     visit(row + static_cast<std::size_t>(run.lane),
                           t * batch_lanes + static_cast<std::size_t>(run.cell),
                           static_cast<std::size_t>(run.lanes));
                   }
                 });
}

void HostLatents::Gather(const ReadLease& lease, const BatchPart& part,
                         const LatentColumns& out) const {
  ForEachRun(lease, part, [&](std::size_t here, std::size_t cell, std::size_t lanes) {
    if (out.deter != nullptr) CopyCells(out.deter, cell, deter_, here, spec_.deter, lanes);
    if (out.stoch != nullptr) CopyCells(out.stoch, cell, stoch_, here, spec_.stoch, lanes);
    if (out.valid != nullptr) CopyCells(out.valid, cell, valid_, here, 1, lanes);
  });
}

void HostLatents::Scatter(const ReadLease& lease, const BatchPart& part, const LatentColumns& in) {
  generations_.CheckThere(lease, part);
  ForEachRun(lease, part, [&](std::size_t here, std::size_t cell, std::size_t lanes) {
    CopyCells(deter_, here, in.deter, cell, spec_.deter, lanes);
    CopyCells(stoch_, here, in.stoch, cell, spec_.stoch, lanes);
    std::memset(valid_ + here, 1, lanes);
  });
}

}  // namespace tetrion
