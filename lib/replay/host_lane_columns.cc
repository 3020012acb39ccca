#include "lib/replay/host_lane_columns.h"

#include <algorithm>
#include <cstring>

#include "lib/core/prefetch.h"

namespace tetrion {
namespace {

std::size_t BytesOf(const RowSpec& row, std::size_t cells, std::size_t versions) {
  std::size_t bytes = versions * sizeof(std::uint32_t);
  ForEachNumber(row,
                [&]<typename Cell>(auto, Cell* RowColumns::*) { bytes += cells * sizeof(Cell); });
  return bytes;
}

}  // namespace

HostLaneColumns::HostLaneColumns(const RowLayout& layout, int shards, std::uint64_t capacity_rows)
    : layout_(layout),
      capacity_rows_(capacity_rows),
      blocks_((capacity_rows + kBlockRows - 1) / kBlockRows),
      cells_(static_cast<std::size_t>(shards) * blocks_ * layout.spec.lanes * kBlockRows),
      bytes_(BytesOf(layout.spec, cells_, static_cast<std::size_t>(shards) * capacity_rows)),
      memory_(bytes_, "the replay's columns by lane,") {
  std::byte* next =
      memory_.data();  // of 16 cells a block, the column of single bytes last: each begins aligned
  ForEachNumber(layout.spec, [&]<typename Cell>(auto, Cell* RowColumns::* column) {
    columns_.*column = reinterpret_cast<Cell*>(next);
    next += cells_ * sizeof(Cell);
  });
  versions_ = reinterpret_cast<std::uint32_t*>(next);
}

void HostLaneColumns::Write(const Chunk& chunk, const std::byte* src) {
  for (int i = 0; i < chunk.rows; ++i, src += layout_.row_bytes) {
    const std::uint64_t slot = (chunk.first + static_cast<std::uint64_t>(i)) % capacity_rows_;
    const std::size_t first = CellOf(chunk.shard, slot, 0);
    ForEachNumber(layout_.spec, [&](auto at, auto column) {
      auto* const to = columns_.*column + first;
      const std::byte* from = src + layout_.*at;
      for (std::size_t lane = 0; lane < layout_.spec.lanes; ++lane, from += sizeof *to) {
        std::memcpy(to + lane * kBlockRows, from, sizeof *to);
      }
    });
    RowHeader header;
    std::memcpy(&header, src + layout_.header, sizeof header);
    versions_[static_cast<std::uint64_t>(chunk.shard) * capacity_rows_ + slot] =
        header.policy_version;
  }
}

void HostLaneColumns::Prefetch(int shard, std::uint64_t slot, int lane) const {
  const std::size_t cell = CellOf(shard, slot, lane);
  ForEachNumber(layout_.spec, [&](auto, auto column) { PrefetchLine(columns_.*column + cell); });
}

void HostLaneColumns::Gather(const LaneRun& run, std::uint64_t rows, std::size_t batch_lanes,
                             const RowColumns& out) const {
  std::uint64_t slot = run.window.start % capacity_rows_;
  auto cell = static_cast<std::size_t>(run.cell);
  while (rows > 0) {  // as many as lie side by side
    const std::uint64_t count =
        std::min({rows, kBlockRows - slot % kBlockRows, capacity_rows_ - slot});
    const std::size_t here = CellOf(run.window.shard, slot, run.lane);
    ForEachNumber(layout_.spec, [&](auto, auto column) {
      if (out.*column == nullptr) return;
      for (std::uint64_t i = 0; i < count; ++i) {
        (out.*column)[cell + i * batch_lanes] = (columns_.*column)[here + i];
      }
    });
    rows -= count;
    cell += count * batch_lanes;
    slot = slot + count == capacity_rows_ ? 0 : slot + count;
  }
}

}  // namespace tetrion
