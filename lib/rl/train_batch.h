#pragma once

#include <cstdint>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/replay/lease.h"
#include "lib/replay/rows.h"

namespace tetrion {

enum class [[nodiscard]] BatchStatus {
  kReady,     // the batch holds rows
  kNotReady,  // not enough committed rows before the source's deadline; try again
  kClosed,    // no batch will come any more
};

// What a trainer gets: W windows of T+1 rows, leased for as long as the batch lives. Nothing is
// copied before the trainer gathers, straight into the columns that its algorithm wants. The lease
// holds the writer up: a trainer drops the batch once it has gathered and, of a recurrent model,
// written the latents back. What a device still does with the rows then ends the lease.
//
// Move-only; trainer thread. Must not outlive its source.
class TrainBatch {
 public:
  // A batch without rows; `status` says why.
  explicit TrainBatch(BatchStatus status) : status_(status) {}
  // CHECKs that `lease` is open; `rows` outlives the batch.
  TrainBatch(ReadLease lease, ReplayRows& rows)
      : status_(BatchStatus::kReady), lease_(std::move(lease)), rows_(&rows) {
    TETRION_CHECK(static_cast<bool>(lease_), "a batch holds an open lease");
  }
  TrainBatch(TrainBatch&&) noexcept = default;
  TrainBatch& operator=(TrainBatch&&) = delete;  // would close a lease in passing
  ~TrainBatch() {
    if (!lease_) return;
    try {
      lease_.CloseAfter(rows_->LastRead());
    } catch (const Error&) {  // the device has failed, and so has what is under way on it
      lease_.Close();
    }
  }

  BatchStatus status() const { return status_; }

  // --- kReady only ---
  int steps() const { return lease_.rows() - 1; }                            // T
  int windows() const { return static_cast<int>(lease_.windows().size()); }  // W
  int lanes() const { return rows_->BatchLanes(lease_); }                    // B
  // Lanes [first_lane, first_lane + lanes) into columns of T+1 rows, as ReplayRows::Gather.
  void Gather(int first_lane, int lanes, const RowColumns& out) const {
    rows_->Gather(lease_, first_lane, lanes, out);
  }
  // Policy version of every row: [T+1, W].
  void GatherVersions(std::uint32_t* out) const { rows_->GatherVersions(lease_, out); }

  // --- kReady only, where the replay keeps latents ---
  // The model's state behind the part's rows, as far as it is known.
  void GatherLatents(const BatchPart& part, const LatentColumns& out) const {
    rows_->GatherLatents(lease_, part, out);
  }
  // Writes the part's latents back for the batches to come.
  void ScatterLatents(const BatchPart& part, const LatentColumns& in) {
    rows_->ScatterLatents(lease_, part, in);
  }

 private:
  BatchStatus status_;
  ReadLease lease_;
  ReplayRows* rows_ = nullptr;
};

}  // namespace tetrion
