#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/cuda/device.h"
#include "lib/replay/batch_lanes.h"
#include "lib/replay/latents.h"
#include "lib/replay/lease.h"
#include "lib/replay/row_columns.h"

namespace tetrion {

class DeviceRows;

// Takes a batch's rows and latents from a device to the host, and latents back, for trainers on the
// CPU: a gather goes into staging memory of the device, from there by one copy a column into pinned
// memory, from there to the caller. Records become views on the host. Latents that are written back
// go the other way.
//
// Thread role: reader thread. Memory grows with the largest batch; growing waits for the device.
class StagedBatch {
 public:
  explicit StagedBatch(DeviceRows& rows) : rows_(rows) {}

  // As ReplayRows; done when they return.
  void Gather(const ReadLease& lease, int first_lane, int lanes, const RowColumns& out);
  void GatherVersions(const ReadLease& lease, std::uint32_t* out);
  void GatherLatents(const ReadLease& lease, const BatchPart& part, const LatentColumns& out);
  // As ReplayRows: enqueued behind the copies of `in`, which is read when it returns. Waits for
  // what the reader stream was asked for before.
  void ScatterLatents(const ReadLease& lease, const BatchPart& part, const LatentColumns& in);

 private:
  // A column on its way, at `offset` of either memory; 0 bytes: not gathered.
  struct Part {
    void* host;  // null: stays in pinned memory
    std::size_t offset, bytes;
  };

  void Clear();
  // A part of `bytes` behind those that there are; its number.
  std::size_t Add(void* host, std::size_t bytes);
  // Memory for latents, all columns, and where it lies on the device.
  LatentColumns AddLatents(const BatchPart& part, const LatentColumns& host);
  // Memory for all parts.
  void Reserve();
  template <typename T>
  T* OnDevice(std::size_t part) const {
    const Part& of = parts_[part];
    return of.bytes == 0 ? nullptr : reinterpret_cast<T*>(device_.data<std::byte>() + of.offset);
  }
  // Copies all parts to the host; waits for the reader stream.
  void Fetch();

  DeviceRows& rows_;
  cuda::DeviceBuffer device_;
  cuda::PinnedBuffer pinned_;
  std::vector<Part> parts_;  // of the gather at hand
  std::size_t used_bytes_ = 0;
};

}  // namespace tetrion
