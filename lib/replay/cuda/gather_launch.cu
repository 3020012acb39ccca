// Gathers are copies; no arithmetic.
#include "lib/replay/cuda/gather_launch.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "lib/cuda/launch.h"
#include "lib/replay/cuda/gather_kernels.cuh"
#include "lib/replay/cuda/record_word.h"

namespace tetrion {
namespace {

constexpr unsigned kBlockThreads = 128;
constexpr std::uint32_t kMostTeam = 32;  // threads that copy one record

bool HasFields(const DeviceColumns& out) {
  return out.action != nullptr || out.log_prob != nullptr || out.mask != nullptr ||
         out.reward != nullptr || out.flags != nullptr || out.cont != nullptr ||
         out.episode_id != nullptr;
}

template <typename Word>
void LaunchCells(cuda::Stream& stream, const RowSlots& first, const GatherTile& tile,
                 const DeviceColumns& out) {
  const auto words =
      out.record == nullptr ? 0 : static_cast<std::uint32_t>(first.record_bytes / sizeof(Word));
  // A power of two, so that it divides the block.
  const std::uint32_t team = std::min(kMostTeam, std::bit_floor(std::max(words, 1U)));
  const unsigned record_blocks =
      words == 0 ? 0 : cuda::BlocksFor(tile.cells(), kBlockThreads / team);
  const unsigned field_blocks = HasFields(out) ? cuda::BlocksFor(tile.cells(), kBlockThreads) : 0;
  if (record_blocks + field_blocks == 0) return;
  const auto launch = [&](const auto& of) {
    Launch(stream, GatherCells<Word, std::decay_t<decltype(of)>>, record_blocks + field_blocks,
           kBlockThreads, 0, first, of, words, team, record_blocks, out);
  };
  if (tile.runs <= SmallGatherTile::kMostRuns) {
    launch(tile.WithRoomFor<SmallGatherTile::kMostRuns>());
  } else {
    launch(tile);
  }
}

// Does every record begin at a multiple of `bytes`, here and there?
bool Aligned(const RowSlots& slots, const DeviceColumns& out, std::uintptr_t bytes) {
  return slots.record_bytes % bytes == 0 &&
         reinterpret_cast<std::uintptr_t>(out.record) % bytes == 0;
}

}  // namespace

void LaunchGather(cuda::Stream& stream, const RowSlots& first, const GatherTile& tile,
                  const DeviceColumns& out) {
  if (Aligned(first, out, sizeof(RecordWord16))) {
    LaunchCells<RecordWord16>(stream, first, tile, out);
  } else if (Aligned(first, out, sizeof(std::uint32_t))) {
    LaunchCells<std::uint32_t>(stream, first, tile, out);
  } else {
    LaunchCells<std::uint8_t>(stream, first, tile, out);
  }
}

void LaunchGatherVersions(cuda::Stream& stream, const RowSlots& first, const GatherTile& tile,
                          std::uint32_t windows, std::uint32_t* out) {
  Launch(stream, GatherRowVersions,
         cuda::BlocksFor(std::uint64_t{tile.rows} * tile.runs, kBlockThreads), kBlockThreads, 0,
         first, tile, windows, out);
}

}  // namespace tetrion
