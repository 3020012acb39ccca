#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "lib/cuda/device.h"
#include "lib/frame/row_slots.h"
#include "lib/replay/cuda/stream_events.h"
#include "lib/replay/device_columns.h"
#include "lib/replay/latent_rows.h"
#include "lib/replay/rows.h"

namespace tetrion {

class StagedBatch;

// ReplayRows in a device's memory: every column has memory of its own, time-major [Tcap, M, ...]
// for each shard, 256-byte aligned, at the same address for life (lib/frame/row_slots.h). Rows get
// in by copies from the host (Write), or kernels write them where they lie (Slots, Written).
//
// Work is enqueued: the writer's on one stream, the reader's on another. A chunk is committed with
// the event that Write or Written gives, a lease closed with LastRead's; the gate fences either
// stream behind the other with them. Streams and device memory of the caller outlive the work.
class DeviceRows final : public ReplayRows {
 public:
  // Allocates everything. Throws Error(kTryAgain) naming what is needed, what is free and how many
  // rows would fit when the device has too little memory. The streams outlive the rows.
  DeviceRows(const cuda::Device& device, const RowSpec& row, int shards, int capacity_rows,
             cuda::Stream& writer, cuda::Stream& reader,
             const std::optional<LatentSpec>& latents = {});
  ~DeviceRows() override;
  DeviceRows(const DeviceRows&) = delete;
  DeviceRows& operator=(const DeviceRows&) = delete;

  const cuda::Device& device() const { return device_; }
  const RowLayout& layout() const override { return layout_; }
  std::uint64_t memory_bytes() const override { return memory_bytes_; }
  // Device memory of a shard: for kernels of the holder of a chunk, who writes it, or of a lease.
  RowSlots Slots(int shard) const;
  bool has_latents() const { return latents_.has_value(); }
  // As Slots; only where the rows have latents, as what is said of latents below.
  LatentSlots LatentsOf(int shard) const { return latents_->Slots(shard); }

  // --- writer thread ---
  cuda::Stream& writer() const { return writer_; }
  // Enqueues one copy a column. From pinned memory, which stays as it is until the event has
  // passed; pageable memory is read before the call returns.
  const Event* Write(const Chunk& chunk, const std::byte* src) override;
  std::unique_ptr<PinnedSource> Pin(std::span<std::byte> memory) override;
  // The event to commit a chunk with that kernels on the writer stream filled: behind them.
  const Event* Written() { return commits_.Record(); }
  // The chunk's rows have no latents, as those that Write brings: before kernels fill it.
  void ForgetLatents(const Chunk& chunk) { latents_->Forget(chunk, writer_); }

  // --- reader thread, lease open ---
  cuda::Stream& reader() const { return reader_; }
  // As ReplayRows::Gather, on the reader stream: into device memory, done later. No host memory
  // takes part.
  void GatherOnDevice(const ReadLease& lease, int first_lane, int lanes,
                      const DeviceColumns& out) const;
  void GatherVersionsOnDevice(const ReadLease& lease, std::uint32_t* out) const;
  void GatherLatentsOnDevice(const ReadLease& lease, const BatchPart& part,
                             const LatentColumns& out) const;
  // Writes latents back to the leased rows: [part.rows, part.lanes, ...].
  void ScatterLatentsOnDevice(const ReadLease& lease, const BatchPart& part,
                              const LatentColumns& in);
  // The event to close a lease with whose rows are still being read: behind the reader's work.
  const Event* LastRead() override { return reads_.Record(); }
  // Into the host's memory, by way of staging memory that grows with the largest batch. Waits for
  // the reader stream, so the lease may be closed at once.
  void Gather(const ReadLease& lease, int first_lane, int lanes,
              const RowColumns& out) const override;
  void GatherVersions(const ReadLease& lease, std::uint32_t* out) const override;
  void GatherLatents(const ReadLease& lease, const BatchPart& part,
                     const LatentColumns& out) const override;
  // From the host's memory, by way of the same staging memory. Waits for the reader stream, but not
  // for what it enqueues: the lease is closed with LastRead.
  void ScatterLatents(const ReadLease& lease, const BatchPart& part,
                      const LatentColumns& in) override;
  // A row as RowLayout has it, for tests and debugging. Waits for the reader stream.
  void CopyRowToHost(int shard, std::uint64_t row, std::byte* out) const;

 private:
  static constexpr std::size_t kColumns = 9;  // of RowLayout

  // Memory of a row in a column whose rows have so many bytes.
  std::byte* At(std::size_t column, std::size_t row_bytes, int shard, std::uint64_t row) const;
  template <typename Visit>
  void ForEachTile(const ReadLease& lease, const BatchPart& part, const Visit& visit) const;

  const cuda::Device device_;
  const RowLayout layout_;
  const std::uint64_t capacity_rows_;
  std::uint64_t memory_bytes_ = 0;
  cuda::Stream& writer_;
  cuda::Stream& reader_;
  std::array<cuda::DeviceBuffer, kColumns> columns_;  // [S, Tcap, M, ...] each
  std::optional<LatentRows> latents_;
  StreamEvents commits_, reads_;
  const std::unique_ptr<StagedBatch> staged_;
};

}  // namespace tetrion
