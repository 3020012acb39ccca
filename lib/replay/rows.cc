#include "lib/replay/rows.h"

#include "lib/core/check.h"

namespace tetrion {

int ReplayRows::BatchLanes(const ReadLease& lease) const {
  int lanes = 0;
  for (const Window& window : lease.windows()) {
    lanes += window.lane < 0 ? static_cast<int>(layout().spec.lanes) : 1;
  }
  return lanes;
}

void ReplayRows::GatherLatents(const ReadLease&, const BatchPart&, const LatentColumns&) const {
  TETRION_CHECK(false, "rows of this replay have no latents on the host");
}

void ReplayRows::ScatterLatents(const ReadLease&, const BatchPart&, const LatentColumns&) {
  TETRION_CHECK(false, "rows of this replay have no latents on the host");
}

AcquireResult PushRows(ReplayGate& gate, ReplayRows& memory, int shard, const std::byte* rows,
                       int count, std::int64_t timeout_ns, int& pushed, const Event** read) {
  pushed = 0;
  if (read != nullptr) *read = nullptr;
  while (pushed < count) {
    const Chunk chunk = gate.Acquire(shard, count - pushed, timeout_ns);
    if (!chunk) return chunk.result;
    const Event* const written =
        memory.Write(chunk, rows + static_cast<std::size_t>(pushed) * memory.layout().row_bytes);
    gate.Commit(chunk, written);
    if (read != nullptr) *read = written;
    pushed += chunk.rows;
  }
  return AcquireResult::kAcquired;
}

}  // namespace tetrion
