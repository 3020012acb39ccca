#pragma once

#include <cstdint>
#include <optional>

#include "lib/cuda/device.h"

namespace tetrion {

// Rows with a lane whose logits were not finite, in device memory; `last` keeps a row from being
// counted once a lane. The type is that of CUDA's atomics.
struct NotFiniteCount {
  unsigned long long rows = 0;
  unsigned long long last = 0;  // row number + 1 of the last one counted
};

// The count, and its way to the host. One thread.
class NotFiniteRows {
 public:
  // Waits for the device.
  explicit NotFiniteRows(const cuda::Device& device);

  NotFiniteCount* device_count() const { return count_.data<NotFiniteCount>(); }

  // As DevicePolicy's.
  void EnqueueCheck(cuda::Stream& stream);
  std::optional<std::uint64_t> TakeCheck();

 private:
  cuda::DeviceBuffer count_;
  cuda::PinnedBuffer copy_;
  cuda::Event copied_;
  bool under_way_ = false;
};

}  // namespace tetrion
