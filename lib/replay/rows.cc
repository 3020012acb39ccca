#include "lib/replay/rows.h"

namespace tetrion {

int ReplayRows::BatchLanes(const ReadLease& lease) const {
  int lanes = 0;
  for (const Window& window : lease.windows()) {
    lanes += window.lane < 0 ? static_cast<int>(layout().spec.lanes) : 1;
  }
  return lanes;
}

AcquireResult PushRows(ReplayGate& gate, ReplayRows& memory, int shard, const std::byte* rows,
                       int count, std::int64_t timeout_ns, int& pushed) {
  pushed = 0;
  while (pushed < count) {
    const Chunk chunk = gate.Acquire(shard, count - pushed, timeout_ns);
    if (!chunk) return chunk.result;
    gate.Commit(chunk, memory.Write(chunk, rows + static_cast<std::size_t>(pushed) *
                                                      memory.layout().row_bytes));
    pushed += chunk.rows;
  }
  return AcquireResult::kAcquired;
}

}  // namespace tetrion
