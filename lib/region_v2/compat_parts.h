#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/region_v2/compat_bell.h"
#include "lib/region_v2/compat_blocks.h"
#include "lib/region_v2/compat_ring.h"
#include "lib/region_v2/compat_wait.h"

namespace tetrion {

// One end's process-local hold on everything in a region. Of kernel and host alike; each uses the
// rings' and bells' sides that are its own. Neither copied nor moved: waiters refer to it.
struct CompatParts {
  // Attaches to a laid-out region. Throws Error(kConfig) with CompatProblems when it is damaged.
  // `clock` outlives the parts.
  CompatParts(std::span<std::byte> region, const Clock& clock);
  CompatParts(const CompatParts&) = delete;
  CompatParts& operator=(const CompatParts&) = delete;

  // Attaches to the stream rings if they are there by now; returns whether they are.
  bool AttachStream();

  std::span<std::byte> memory;
  const Clock& clock;
  CompatDoorbellBlock* doorbell;
  CompatCommandRing command;
  CompatResponseRing response;
  CompatObsRing obs;        // invalid without stream rings
  CompatActionRing action;  // invalid without stream rings
  CompatBell obs_bell;      // host rings, kernel sleeps
  CompatBell action_bell;   // kernel rings, host sleeps
  CompatLifeSigns kernel_signs;
  CompatLifeSigns host_signs;
};

}  // namespace tetrion
