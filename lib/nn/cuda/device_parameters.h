#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/cuda/device.h"
#include "lib/cuda/kernel_spans.h"
#include "lib/nn/parameters.h"

namespace tetrion {

// A flat buffer of parameters in device memory and beside it the version that it is. Both are
// replaced in place by one copy in the order of a stream: kernels enqueued before, captured ones
// too, see the old parameters with the old version, kernels enqueued behind it the new ones.
//
// Thread role: one thread. The addresses never change.
class DeviceParameters {
 public:
  // Contents are undefined until the first Publish.
  DeviceParameters(const cuda::Device& device, std::size_t floats);

  // Pinned memory [floats] for the next parameters, to be filled before Publish. Waits for the copy
  // of the Publish before the last one.
  std::span<float> Stage();
  // Enqueues the copy of what Stage gave, purpose kWeights. Not in a capture.
  void Publish(std::uint32_t version, cuda::Stream& stream);

  // Of the last Publish.
  std::uint32_t version() const { return version_; }

  // Device memory, for kernels.
  const std::uint32_t* device_version() const { return buffer_.data<std::uint32_t>(); }
  cuda::DeviceSpan<const float> Piece(const ParameterInfo& info) const;

 private:
  struct Staging {
    cuda::PinnedBuffer memory;  // as the device's: version, then parameters
    cuda::Event copied;
  };

  cuda::DeviceBuffer buffer_;
  std::array<Staging, 2> staging_;
  std::size_t next_ = 0;  // of staging_
  std::uint32_t version_ = 0;
};

// Copies a blob of a layout's parameters with every weight [out, in] as [in, out], so that threads
// of neighbouring outputs read neighbours; pieces of other shapes as they are. `out` has the
// layout's floats.
void TransposeWeights(const ParameterLayout& layout, std::span<const std::byte> blob,
                      std::span<float> out);

}  // namespace tetrion
