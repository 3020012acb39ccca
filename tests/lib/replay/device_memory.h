#pragma once

#include <cstdint>
#include <optional>

#include "lib/cuda/device.h"
#include "lib/replay/device_rows.h"

namespace tetrion::testing {

// DeviceRows with a device and streams of their own, of the backend that the test is linked with.
class DeviceMemory {
 public:
  static const char* Missing() {
    return cuda::Device::Count() == 0 ? "no CUDA device: nothing ran on one" : nullptr;
  }
  DeviceMemory(const RowSpec& row, int shards, int capacity_rows,
               const std::optional<LatentSpec>& latents = {})
      : rows_(device_, row, shards, capacity_rows, writer_, reader_, latents) {}

  cuda::Device& device() { return device_; }
  cuda::Stream& writer() { return writer_; }
  cuda::Stream& reader() { return reader_; }
  DeviceRows& rows() { return rows_; }
  std::int32_t Action(int shard, std::uint64_t row, int lane) {
    std::int32_t action = 0;
    cuda::CopyToHost(&action, rows_.Slots(shard).At(row).action + lane, sizeof action,
                     cuda::CopyPurpose::kAccount, writer_);
    return action;
  }

 private:
  cuda::Device device_{0};
  cuda::Stream writer_{device_, "writer"}, reader_{device_, "reader"};
  DeviceRows rows_;
};

}  // namespace tetrion::testing
