#include "lib/rl/torch/window_tensors.h"

#include <utility>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/error.h"

namespace tetrion {

SharedLease::SharedLease(ReadLease lease, DeviceRows& rows)
    : lease_(std::move(lease)), rows_(rows) {
  TETRION_CHECK(static_cast<bool>(lease_), "tensors share an open lease");
}

SharedLease::~SharedLease() {
  try {
    lease_.CloseAfter(rows_.LastRead());
  } catch (const Error&) {  // a device that fails reads nothing more; the next call on it says so
    lease_.Close();
  }
}

std::optional<WindowTensors> ViewWindow(const std::shared_ptr<SharedLease>& lease,
                                        std::size_t window) {
  const Window& rows = lease->lease().windows()[window];
  TETRION_CHECK(rows.lane < 0, "a window of one lane is no piece of memory");
  const auto count = static_cast<std::uint64_t>(lease->lease().rows());
  const RowSlots slots = lease->rows().Slots(rows.shard);
  if (rows.start % slots.capacity_rows + count > slots.capacity_rows) return std::nullopt;
  cuda::Stream& reader = lease->rows().reader();
  const bool simulated = reader.native() == nullptr;
  if (simulated) reader.Synchronize();
  const auto device =
      simulated ? torch::Device(torch::kCPU)
                : torch::Device(torch::kCUDA,
                                static_cast<torch::DeviceIndex>(lease->rows().device().ordinal()));
  const std::vector<std::int64_t> cells = {static_cast<std::int64_t>(count), slots.lanes};
  const auto view = [&](void* column, torch::ScalarType type, std::vector<std::int64_t> shape) {
    // The deleter is never called but for what it holds.
    return torch::from_blob(
        column, shape, [lease](void*) {}, torch::TensorOptions().dtype(type).device(device));
  };
  const RowView row = slots.At(rows.start);
  std::vector<std::int64_t> bytes = cells;
  bytes.push_back(slots.record_bytes);
  WindowTensors tensors = {.record = view(row.record, torch::kUInt8, bytes),
                           .action = view(row.action, torch::kInt32, cells),
                           .log_prob = view(row.log_prob, torch::kFloat32, cells),
                           .mask = {},
                           .reward = view(row.reward, torch::kFloat32, cells),
                           .flags = view(row.flags, torch::kUInt8, cells),
                           .cont = view(row.cont, torch::kFloat32, cells),
                           .episode_id = view(row.episode_id, torch::kInt32, cells)};
  if (row.mask != nullptr) tensors.mask = view(row.mask, torch::kInt64, cells);
  return tensors;
}

}  // namespace tetrion
