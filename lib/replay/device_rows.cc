#include "lib/replay/device_rows.h"

#include <string>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/replay/cuda/gather_launch.h"
#include "lib/replay/cuda/gather_tile.h"
#include "lib/replay/cuda/shard_slots.h"
#include "lib/replay/cuda/staged_batch.h"

namespace tetrion {
namespace {

constexpr std::uint32_t kPictureBytes = 1440;  // of a packed2 picture
// Points on their way: chunks that one source of rows commits at a time, and batches being read.
constexpr std::size_t kPoints = 16;
constexpr std::uint32_t kAlignedLanes = 8;  // whose pictures are 256-byte aligned together

// A column of a row in the host's layout.
struct ColumnPlace {
  std::size_t offset = 0;
  std::size_t bytes = 0;  // of one row, all lanes; 0: there is none
};

std::array<ColumnPlace, 9> PlacesOf(const RowLayout& layout) {
  const std::size_t m = layout.spec.lanes;
  return {{{layout.header, sizeof(RowHeader)},
           {layout.record, m * layout.spec.record_bytes},
           {layout.action, m * sizeof(std::int32_t)},
           {layout.log_prob, m * sizeof(float)},
           {layout.mask, layout.spec.has_mask ? m * sizeof(std::uint64_t) : 0},
           {layout.reward, m * sizeof(float)},
           {layout.flags, m * sizeof(std::uint8_t)},
           {layout.cont, m * sizeof(float)},
           {layout.episode_id, m * sizeof(std::int32_t)}}};
}

// What a replay's memory depends on, but for its rows.
struct Shape {
  const RowLayout& layout;
  int shards;
  const std::optional<LatentSpec>& latents;

  std::uint64_t Bytes(std::uint64_t capacity_rows) const {
    std::uint64_t bytes = 0;
    for (const ColumnPlace& place : PlacesOf(layout)) {
      bytes += static_cast<std::uint64_t>(shards) * ShardColumnBytes(capacity_rows, place.bytes);
    }
    if (!latents) return bytes;
    return bytes + LatentRows::BytesOf(*latents, layout.spec.lanes, shards, capacity_rows);
  }
  // The most rows a shard that take at most `bytes`.
  std::uint64_t RowsIn(std::uint64_t bytes) const {
    std::uint64_t low = 0, high = bytes / (static_cast<std::uint64_t>(shards) * sizeof(RowHeader));
    while (low < high) {
      const std::uint64_t middle = low + (high - low + 1) / 2;
      if (Bytes(middle) <= bytes) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
};

void CheckMemory(const cuda::Device& device, const Shape& shape, std::uint64_t capacity_rows) {
  const std::uint64_t need = shape.Bytes(capacity_rows);
  const std::uint64_t free = device.Memory().free_bytes;
  if (need <= free) return;
  throw Error(ExitCode::kTryAgain,
              "a replay of " + std::to_string(shape.shards) + " shards x " +
                  std::to_string(capacity_rows) + " rows needs " + std::to_string(need) +
                  " bytes of device " + std::to_string(device.ordinal()) + " (" + device.name() +
                  "), of which " + std::to_string(free) +
                  " are free: " + std::to_string(shape.RowsIn(free)) +
                  " rows a shard would fit; lower --max-workers, --replay-rows or --lanes, which a "
                  "resumed run keeps: --init-from RUN begins another");
}

class PinnedRows final : public PinnedSource {
 public:
  // `writer`: the stream of its copies.
  PinnedRows(const cuda::Device& device, std::span<std::byte> memory, cuda::Stream& writer)
      : writer_(writer), range_(device, memory.data(), memory.size(), "a source of rows") {}
  ~PinnedRows() override {
    try {
      writer_.Synchronize();
    } catch (const Error& error) {  // a device that fails copies nothing more
      log::warn("a source of rows is unpinned: {}", error.what());
    }
  }

 private:
  cuda::Stream& writer_;
  const cuda::PinnedRange range_;
};

}  // namespace

DeviceRows::DeviceRows(const cuda::Device& device, const RowSpec& row, int shards,
                       int capacity_rows, cuda::Stream& writer, cuda::Stream& reader,
                       const std::optional<LatentSpec>& latents)
    : device_(device),
      layout_(row),
      capacity_rows_(static_cast<std::uint64_t>(capacity_rows)),
      writer_(writer),
      reader_(reader),
      commits_(device, writer, reader, kPoints * static_cast<std::size_t>(shards)),
      reads_(device, reader, writer, kPoints),
      staged_(std::make_unique<StagedBatch>(*this)) {
  const Shape shape = {.layout = layout_, .shards = shards, .latents = latents};
  CheckMemory(device, shape, capacity_rows_);
  memory_bytes_ = shape.Bytes(capacity_rows_);
  const auto s = static_cast<std::uint64_t>(shards);
  const auto places = PlacesOf(layout_);
  for (std::size_t i = 0; i < kColumns; ++i) {
    columns_[i] = cuda::DeviceBuffer(device, s * ShardColumnBytes(capacity_rows_, places[i].bytes),
                                     "a column of the replay");
  }
  if (latents) latents_.emplace(device, *latents, row.lanes, shards, capacity_rows_);
  if (row.record_bytes == kPictureBytes && row.lanes % kAlignedLanes != 0) {
    log::warn(
        "replay rows of {} lanes: only a shard's first picture is 256-byte aligned; with a "
        "multiple of {} lanes every row's is",
        row.lanes, kAlignedLanes);
  }
}

DeviceRows::~DeviceRows() = default;

RowSlots DeviceRows::Slots(int shard) const {
  const auto& c = columns_;
  RowSlots first;
  first.header = c[0].data<RowHeader>();
  first.record = c[1].data<std::byte>();
  first.action = c[2].data<std::int32_t>();
  first.log_prob = c[3].data<float>();
  first.mask = c[4].data<std::uint64_t>();
  first.reward = c[5].data<float>();
  first.flags = c[6].data<std::uint8_t>();
  first.cont = c[7].data<float>();
  first.episode_id = c[8].data<std::int32_t>();
  first.capacity_rows = capacity_rows_;
  first.lanes = layout_.spec.lanes;
  first.record_bytes = layout_.spec.record_bytes;
  return ShardSlots(first, static_cast<std::uint32_t>(shard));
}

std::byte* DeviceRows::At(std::size_t column, std::size_t row_bytes, int shard,
                          std::uint64_t row) const {
  return columns_[column].data<std::byte>() +
         static_cast<std::uint64_t>(shard) * ShardColumnBytes(capacity_rows_, row_bytes) +
         row % capacity_rows_ * row_bytes;
}

const Event* DeviceRows::Write(const Chunk& chunk, const std::byte* src) {
  const auto places = PlacesOf(layout_);
  for (std::size_t i = 0; i < kColumns; ++i) {
    const auto [offset, bytes] = places[i];
    if (bytes == 0) continue;
    cuda::CopyRowsToDevice(At(i, bytes, chunk.shard, chunk.first), bytes, src + offset,
                           layout_.row_bytes, bytes, static_cast<std::size_t>(chunk.rows),
                           cuda::CopyPurpose::kIngest, writer_);
  }
  if (latents_) ForgetLatents(chunk);
  return commits_.Record();
}

template <typename Visit>
void DeviceRows::ForEachTile(const ReadLease& lease, const BatchPart& part,
                             const Visit& visit) const {
  ForEachGatherTile(lease, static_cast<int>(layout_.spec.lanes), capacity_rows_, part, visit);
}

std::unique_ptr<PinnedSource> DeviceRows::Pin(std::span<std::byte> memory) {
  return std::make_unique<PinnedRows>(device_, memory, writer_);
}

void DeviceRows::GatherOnDevice(const ReadLease& lease, int first_lane, int lanes,
                                const DeviceColumns& out) const {
  const RowSlots first = Slots(0);
  ForEachTile(lease, {.first_lane = first_lane, .lanes = lanes, .rows = lease.rows()},
              [&](const GatherTile& tile) { LaunchGather(reader_, first, tile, out); });
}

void DeviceRows::GatherVersionsOnDevice(const ReadLease& lease, std::uint32_t* out) const {
  const RowSlots first = Slots(0);
  const auto windows = static_cast<std::uint32_t>(lease.windows().size());
  ForEachTile(
      lease, {.lanes = BatchLanes(lease), .rows = lease.rows()},
      [&](const GatherTile& tile) { LaunchGatherVersions(reader_, first, tile, windows, out); });
}

void DeviceRows::GatherLatentsOnDevice(const ReadLease& lease, const BatchPart& part,
                                       const LatentColumns& out) const {
  ForEachTile(lease, part, [&](const GatherTile& tile) { latents_->Gather(tile, out, reader_); });
}

void DeviceRows::ScatterLatentsOnDevice(const ReadLease& lease, const BatchPart& part,
                                        const LatentColumns& in) {
  latents_->CheckThere(lease, part);
  ForEachTile(lease, part, [&](const GatherTile& tile) { latents_->Scatter(tile, in, reader_); });
}

void DeviceRows::Gather(const ReadLease& lease, int first_lane, int lanes,
                        const RowColumns& out) const {
  staged_->Gather(lease, first_lane, lanes, out);
}

void DeviceRows::GatherVersions(const ReadLease& lease, std::uint32_t* out) const {
  staged_->GatherVersions(lease, out);
}

void DeviceRows::GatherLatents(const ReadLease& lease, const BatchPart& part,
                               const LatentColumns& out) const {
  TETRION_CHECK(latents_.has_value(), "rows made without latents");
  staged_->GatherLatents(lease, part, out);
}

void DeviceRows::ScatterLatents(const ReadLease& lease, const BatchPart& part,
                                const LatentColumns& in) {
  TETRION_CHECK(latents_.has_value(), "rows made without latents");
  staged_->ScatterLatents(lease, part, in);
}

void DeviceRows::CopyRowToHost(int shard, std::uint64_t row, std::byte* out) const {
  const auto places = PlacesOf(layout_);
  for (std::size_t i = 0; i < kColumns; ++i) {
    const auto [offset, bytes] = places[i];
    cuda::CopyToHost(out + offset, At(i, bytes, shard, row), bytes, cuda::CopyPurpose::kAccount,
                     reader_);
  }
}

}  // namespace tetrion
