#pragma once

#include <cstdint>
#include <string>

#include "lib/run/run_config.h"

namespace tetrion {

// What the shared regions of a run occupy in --shm-dir, by the functions that make them.
struct ShmSize {
  std::uint64_t learner_bytes = 0;  // the learner's region
  std::uint64_t worker_bytes = 0;   // a worker's: its ring, and what else a streamed one has
  std::uint64_t workers = 0;        // at once: the run's replay slots

  std::uint64_t TotalBytes() const { return learner_bytes + workers * worker_bytes; }
  // Of a volume for them: a quarter more, for what a killed actor leaves until the learner removes
  // it, in whole MiB.
  std::uint64_t VolumeMib() const;
};

// `run` is resolved. `streamed`: as with --inference streamed.
ShmSize ShmSizeOf(const RunConfig& run, bool streamed);
// Lines for people: each region's bytes, the sum, the volume's size for a compose file.
std::string ShmSizeText(const ShmSize& size);

}  // namespace tetrion
