#include "lib/nn/cuda/device_parameters.h"

#include <cstring>

namespace tetrion {
namespace {

constexpr std::size_t kVersionBytes = 256;  // so that the parameters stay aligned as a buffer is

}  // namespace

DeviceParameters::DeviceParameters(const cuda::Device& device, std::size_t floats)
    : buffer_(device, kVersionBytes + floats * sizeof(float), "a policy's parameters"),
      staging_{Staging{cuda::PinnedBuffer(buffer_.bytes(), "parameters on their way to a device"),
                       cuda::Event(device)},
               Staging{cuda::PinnedBuffer(buffer_.bytes(), "parameters on their way to a device"),
                       cuda::Event(device)}} {
  for (Staging& staging : staging_) {
    std::memset(staging.memory.data<std::byte>(), 0, staging.memory.bytes());
  }
}

std::span<float> DeviceParameters::Stage() {
  Staging& staging = staging_[next_];
  if (!staging.copied.Passed()) staging.copied.Synchronize();
  auto* values = reinterpret_cast<float*>(staging.memory.data<std::byte>() + kVersionBytes);
  return {values, (buffer_.bytes() - kVersionBytes) / sizeof(float)};
}

void DeviceParameters::Publish(std::uint32_t version, cuda::Stream& stream) {
  Staging& staging = staging_[next_];
  std::memcpy(staging.memory.data<std::byte>(), &version, sizeof version);
  cuda::CopyToDevice(buffer_.data<std::byte>(), staging.memory.data<std::byte>(), buffer_.bytes(),
                     cuda::CopyPurpose::kWeights, stream);
  stream.Record(staging.copied);
  next_ = (next_ + 1) % staging_.size();
  version_ = version;
}

cuda::DeviceSpan<const float> DeviceParameters::Piece(const ParameterInfo& info) const {
  const auto* values =
      reinterpret_cast<const float*>(buffer_.data<const std::byte>() + kVersionBytes);
  return {values + info.offset, info.size};
}

void TransposeWeights(const ParameterLayout& layout, std::span<const std::byte> blob,
                      std::span<float> out) {
  for (const ParameterInfo& info : layout) {
    const std::byte* from = blob.data() + info.offset * sizeof(float);
    float* to = out.data() + info.offset;
    if (info.shape.size() != 2) {
      std::memcpy(to, from, info.size * sizeof(float));
      continue;
    }
    const auto rows = static_cast<std::size_t>(info.shape[0]), columns = info.size / rows;
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        std::memcpy(to + c * rows + r, from + (r * columns + c) * sizeof(float), sizeof(float));
      }
    }
  }
}

}  // namespace tetrion
