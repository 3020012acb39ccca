// Unpacking of pictures; numeric policy in pixel_kernels.cuh.
#include "lib/replay/pixel_gather.h"

#include <array>

#include "lib/core/check.h"
#include "lib/cuda/launch.h"
#include "lib/replay/cuda/gather_tile.h"
#include "lib/replay/cuda/pixel_kernels.cuh"

namespace tetrion {
namespace {

constexpr unsigned kBlockThreads = 128;
static_assert(kPictureBytes == PixelGather::kRecordBytes);

// The pixels of every byte, on the device. Waits for the stream.
template <typename Pixel>
cuda::DeviceBuffer TableOn(const DeviceRows& rows) {
  std::array<PixelQuad<Pixel>, 256> table;
  for (std::uint32_t byte = 0; byte < 256; ++byte) table[byte] = QuadOf<Pixel>(byte);
  cuda::DeviceBuffer buffer(rows.device(), sizeof table, "a table of pixels");
  cuda::CopyToDevice(buffer.data<std::byte>(), table.data(), sizeof table,
                     cuda::CopyPurpose::kSetUp, rows.reader());
  return buffer;
}

}  // namespace

PixelGather::PixelGather(const DeviceRows& rows, UnpackImpl impl) : rows_(rows), impl_(impl) {
  TETRION_CHECK(rows.layout().spec.record_bytes == kRecordBytes, "records are packed pictures");
  if (impl != UnpackImpl::kLut) return;
  table_ = TableOn<float>(rows);
  table_bf16_ = TableOn<std::uint16_t>(rows);
}

void PixelGather::Gather(const ReadLease& lease, int first_lane, int lanes, float* out) {
  GatherAs(lease, first_lane, lanes, table_, out);
}

void PixelGather::Gather(const ReadLease& lease, int first_lane, int lanes, std::uint16_t* out) {
  GatherAs(lease, first_lane, lanes, table_bf16_, out);
}

template <typename Pixel>
void PixelGather::GatherAs(const ReadLease& lease, int first_lane, int lanes,
                           const cuda::DeviceBuffer& table, Pixel* out) {
  using Quad = PixelQuad<Pixel>;
  TETRION_CHECK(reinterpret_cast<std::uintptr_t>(out) % alignof(Quad) == 0,
                "pixels are written by fours");
  cuda::Stream& stream = rows_.reader();
  Quad* const quads = reinterpret_cast<Quad*>(out);
  if (impl_ == UnpackImpl::kKernel) {
    const RowSlots first = rows_.Slots(0);
    ForEachGatherTile(lease, static_cast<int>(first.lanes), first.capacity_rows,
                      {.first_lane = first_lane, .lanes = lanes, .rows = lease.rows()},
                      [&](const GatherTile& tile) {
                        Launch(stream, GatherPixels<Pixel>, tile.cells(), kPixelThreads, 0, first,
                               tile, quads);
                      });
    return;
  }
  const std::size_t bytes =
      static_cast<std::size_t>(lease.rows()) * static_cast<std::size_t>(lanes) * kRecordBytes;
  if (records_.bytes() < bytes) {
    records_ = {};
    records_ = cuda::DeviceBuffer(rows_.device(), bytes, "records on their way to pixels");
  }
  rows_.GatherOnDevice(lease, first_lane, lanes, {.record = records_.data<std::byte>()});
  Launch(stream, LookUpPixels<Pixel>, cuda::BlocksFor(bytes, kLookUps * kBlockThreads),
         kBlockThreads, 0,
         cuda::DeviceSpan<const std::uint8_t>(records_.data<std::uint8_t>(), bytes),
         cuda::DeviceSpan<const Quad>(table.data<Quad>(), 256), quads);
}

}  // namespace tetrion
