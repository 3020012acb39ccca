#pragma once

#include <cstdint>

#include "lib/cuda/device.h"
#include "lib/replay/device_rows.h"

namespace tetrion {

// How packed pictures become pixels: equal results.
enum class UnpackImpl {
  kLut,     // gathers the records, then looks each byte up in a table: the reference
  kKernel,  // one kernel reads the ring and writes pixels
};

// Gathers `packed2` records (lib/envs/views/packed2.h) out of a device's replay as the pixels that
// a network eats: 72 x 80 of one channel, 0 white to 1 black, a shade of two bits over 3.
//
// Thread role: reader thread, lease open. Enqueues on the reader stream. The table's memory is made
// with the object, the memory of its records grows with the largest batch, which waits for the
// device.
class PixelGather {
 public:
  static constexpr std::uint32_t kRecordBytes = 1440, kPixels = 4 * kRecordBytes;

  // CHECKs that the rows' records are pictures. The rows outlive the object.
  PixelGather(const DeviceRows& rows, UnpackImpl impl);

  // Lanes [first_lane, first_lane + lanes) of the batch into device memory, aligned to four pixels:
  // [R, lanes, 72, 80] f32, or bf16.
  void Gather(const ReadLease& lease, int first_lane, int lanes, float* out);
  void Gather(const ReadLease& lease, int first_lane, int lanes, std::uint16_t* out);

 private:
  template <typename Pixel>
  void GatherAs(const ReadLease& lease, int first_lane, int lanes, const cuda::DeviceBuffer& table,
                Pixel* out);

  const DeviceRows& rows_;
  const UnpackImpl impl_;
  cuda::DeviceBuffer table_, table_bf16_;  // [256, 4] pixels of a byte
  cuda::DeviceBuffer records_;             // [R, b, 1440], of kLut
};

}  // namespace tetrion
