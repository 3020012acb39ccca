// Latents are copied; no arithmetic.
#include "lib/replay/latent_rows.h"

#include "lib/cuda/launch.h"
#include "lib/replay/cuda/latent_kernels.cuh"
#include "lib/replay/cuda/record_word.h"

namespace tetrion {
namespace {

constexpr unsigned kBlockThreads = 128;
constexpr std::uint32_t kTeam = 32;

bool Aligned(const LatentSpec& spec, const LatentColumns& batch) {
  constexpr std::uintptr_t kBytes = sizeof(RecordWord16);
  return spec.deter * sizeof(*batch.deter) % kBytes == 0 && spec.stoch % kBytes == 0 &&
         reinterpret_cast<std::uintptr_t>(batch.deter) % kBytes == 0 &&
         reinterpret_cast<std::uintptr_t>(batch.stoch) % kBytes == 0;
}

template <bool kBack>
void LaunchMove(cuda::Stream& stream, const LatentSlots& first, const GatherTile& tile,
                const LatentColumns& batch) {
  const auto kernel = Aligned(first.spec, batch) ? MoveLatents<RecordWord16, kBack>
                                                 : MoveLatents<std::uint8_t, kBack>;
  Launch(stream, kernel, cuda::BlocksFor(tile.cells() * kTeam, kBlockThreads), kBlockThreads, 0,
         first, tile, kTeam, batch);
}

}  // namespace

std::uint64_t LatentRows::BytesOf(const LatentSpec& spec, std::uint32_t lanes, int shards,
                                  std::uint64_t capacity_rows) {
  const std::uint64_t m = lanes;
  return static_cast<std::uint64_t>(shards) *
         (ShardColumnBytes(capacity_rows, m * spec.deter * sizeof(std::uint16_t)) +
          ShardColumnBytes(capacity_rows, m * spec.stoch) + ShardColumnBytes(capacity_rows, m));
}

LatentRows::LatentRows(const cuda::Device& device, const LatentSpec& spec, std::uint32_t lanes,
                       int shards, std::uint64_t capacity_rows)
    : spec_(spec),
      lanes_(lanes),
      capacity_rows_(capacity_rows),
      generations_(shards, capacity_rows) {
  const auto column = [&](std::uint64_t cell_bytes) {
    const std::uint64_t bytes = ShardColumnBytes(capacity_rows, lanes * cell_bytes);
    return cuda::DeviceBuffer(device, static_cast<std::uint64_t>(shards) * bytes,
                              "latents of the replay");
  };
  deter_ = column(spec.deter * sizeof(std::uint16_t));
  stoch_ = column(spec.stoch);
  valid_ = column(1);
}

LatentSlots LatentRows::Slots(int shard) const {
  const LatentSlots first = {.deter = deter_.data<std::uint16_t>(),
                             .stoch = stoch_.data<std::uint8_t>(),
                             .valid = valid_.data<std::uint8_t>(),
                             .spec = spec_,
                             .capacity_rows = capacity_rows_,
                             .lanes = lanes_};
  return ShardLatents(first, static_cast<std::uint32_t>(shard));
}

void LatentRows::Forget(const Chunk& chunk, cuda::Stream& writer) {
  generations_.Write(chunk);
  cuda::SetBytes(Slots(chunk.shard).valid + chunk.first % capacity_rows_ * lanes_, 0,
                 static_cast<std::size_t>(chunk.rows) * lanes_, writer);
}

void LatentRows::Gather(const GatherTile& tile, const LatentColumns& out,
                        cuda::Stream& reader) const {
  LaunchMove<false>(reader, Slots(0), tile, out);
}

void LatentRows::Scatter(const GatherTile& tile, const LatentColumns& in,
                         cuda::Stream& reader) const {
  LaunchMove<true>(reader, Slots(0), tile, in);
}

}  // namespace tetrion
