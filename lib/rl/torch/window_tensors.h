#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "lib/nn/torch/torch_pch.h"
#include "lib/replay/device_rows.h"
#include "lib/replay/lease.h"

namespace tetrion {

// A lease on rows of a device that tensors share: closed when the last of them is gone, behind the
// work that the reader stream has by then. Reader thread; outlived by gate and rows.
class SharedLease {
 public:
  // CHECKs that `lease` is open.
  SharedLease(ReadLease lease, DeviceRows& rows);
  ~SharedLease();
  SharedLease(const SharedLease&) = delete;
  SharedLease& operator=(const SharedLease&) = delete;

  const ReadLease& lease() const { return lease_; }
  DeviceRows& rows() const { return rows_; }

 private:
  ReadLease lease_;
  DeviceRows& rows_;
};

// The columns of a window of R rows of all M lanes, as they lie in the replay: nothing is copied,
// and every tensor, with each view of it, holds the lease. Tensors of the rows' device; of the CPU
// where that is simulated. What the columns mean: lib/frame/row_layout.h; flags are the row's own,
// without what a gather adds to them.
struct WindowTensors {
  torch::Tensor record;      // [R, M, record_bytes] u8
  torch::Tensor action;      // [R, M] i32
  torch::Tensor log_prob;    // [R, M] f32
  torch::Tensor mask;        // [R, M] i64; undefined without masks
  torch::Tensor reward;      // [R, M] f32
  torch::Tensor flags;       // [R, M] u8
  torch::Tensor cont;        // [R, M] f32
  torch::Tensor episode_id;  // [R, M] i32
};

// Window number `window` of the lease, which has all lanes. Nothing where it wraps round the end of
// the ring: its rows are no single piece then, and have to be gathered. Work on the reader stream
// finds the rows in place; on a simulated device, whose work waits to be asked for, the call waits
// for that stream.
std::optional<WindowTensors> ViewWindow(const std::shared_ptr<SharedLease>& lease,
                                        std::size_t window);

}  // namespace tetrion
