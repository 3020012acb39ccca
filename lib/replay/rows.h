#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "lib/frame/row_layout.h"
#include "lib/replay/batch_lanes.h"
#include "lib/replay/event.h"
#include "lib/replay/gate.h"
#include "lib/replay/latents.h"
#include "lib/replay/lease.h"
#include "lib/replay/row_columns.h"

namespace tetrion {

// Host memory that rows are copied from by a device itself; as long as it lives. The memory must
// outlive it.
class PinnedSource {
 public:
  virtual ~PinnedSource() = default;
};

// The replay's memory: S shards of Tcap rows each (lib/frame/row_layout.h), allocated once; what
// ingest and a trainer on the host need to know of it. A gate with the same shards and capacity
// says which rows may be written and read when; the memory itself checks nothing of that.
class ReplayRows {
 public:
  virtual ~ReplayRows() = default;

  virtual const RowLayout& layout() const = 0;
  virtual std::uint64_t memory_bytes() const = 0;

  // --- writer thread ---
  // Copies the chunk's rows from `src`, where they lie back to back. Returns the event to commit
  // them with; until it has passed `src` must stay as it is. nullptr: done.
  virtual const Event* Write(const Chunk& chunk, const std::byte* src) = 0;
  // Makes `memory` a source that Write need not copy on the host; null where that means nothing.
  // Made and destroyed outside of steps: both may wait. Throws Error(kTryAgain).
  virtual std::unique_ptr<PinnedSource> Pin(std::span<std::byte> memory) {
    static_cast<void>(memory);
    return nullptr;
  }

  // --- reader thread, lease open ---
  // Lanes of a batch B: windows side by side, each with all M lanes or with its one.
  int BatchLanes(const ReadLease& lease) const;
  // Copies lanes [first_lane, first_lane + lanes) of the batch, all rows of its windows, and ORs
  // is_last into rows whose successor is_first, so that killed lanes and reused slots end episodes.
  // A row cut that way is an abandonment, not a termination: cont stays 1. Done when it returns.
  virtual void Gather(const ReadLease& lease, int first_lane, int lanes,
                      const RowColumns& out) const = 0;
  // Policy versions of the leased rows: [R, W] for W windows. Done when it returns.
  virtual void GatherVersions(const ReadLease& lease, std::uint32_t* out) const = 0;

  // --- reader thread, lease open, rows with latents: a CHECK fails without ---
  // What is known of a recurrent model's state behind the part's rows. A new row has none: the
  // trainer writes it back. Done when it returns.
  virtual void GatherLatents(const ReadLease& lease, const BatchPart& part,
                             const LatentColumns& out) const;
  // Writes `in` back to the part's rows, which have latents from then on. Where windows overlap
  // the last one's are kept. `in` is read when it returns; done behind LastRead.
  virtual void ScatterLatents(const ReadLease& lease, const BatchPart& part,
                              const LatentColumns& in);
  // The event to close a lease with: behind all that was asked of its rows. nullptr: done.
  virtual const Event* LastRead() { return nullptr; }
};

// Writer thread. Puts `count` rows lying back to back into the shard, committing every full stride:
// as many as the gate lets in, waiting at most `timeout_ns` for each chunk. `pushed` says how many,
// `read`, where wanted, the event after which none of them is read any more; nullptr: now.
AcquireResult PushRows(ReplayGate& gate, ReplayRows& memory, int shard, const std::byte* rows,
                       int count, std::int64_t timeout_ns, int& pushed,
                       const Event** read = nullptr);

}  // namespace tetrion
