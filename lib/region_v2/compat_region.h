#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/core/clock.h"
#include "lib/region_v2/compat_bell.h"
#include "lib/region_v2/compat_blocks.h"
#include "lib/region_v2/compat_end.h"
#include "lib/region_v2/compat_ring.h"
#include "lib/region_v2/compat_wait.h"
#include "lib/shm/mapped_file.h"

namespace tetrion {

enum class CompatRole { kKernel, kHost };

// Where the stream rings of a region lie.
struct CompatStreamPlace {
  std::size_t obs = 0;
  std::size_t action = 0;
};

// A mapped region and the right to play one role in it, held until destruction or death (a lock of
// the role's byte; a file system without locks gets a warning). One thread.
class CompatRegion {
 public:
  // Maps `path`: a plain file, a file in /dev/shm, QEMU's ivshmem memory, a device. The kernel
  // creates a missing plain file with `bytes` (1 or 2 MiB); an existing one may have either size
  // and keeps it; of a character device either role maps `bytes`. The host waits up to `timeout_ns`
  // for the file to be there and large enough. Throws Error: kTryAgain when the file does not come
  // or another process has the role; kUsage when it is too small (have and need), cannot be
  // mapped or may not be opened.
  static CompatRegion Open(const std::string& path, CompatRole role,
                           std::size_t bytes = kCompatRegionBytes, std::int64_t timeout_ns = 0);

  std::span<std::byte> memory() const { return {file_.data(), file_.bytes()}; }
  const std::string& path() const { return file_.path(); }

 private:
  explicit CompatRegion(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
};

// The kernel's part of set-up, under its role. Lays out what has no magic yet, each magic last, and
// adopts what has: indices are never zeroed, epochs go up by one, and the rings the kernel consumes
// are skipped to their heads. `stream`: lay out stream rings too, where the region's size says,
// unless another program's heap reaches there; half a pair is always completed. Returns whether
// anything was adopted. Throws Error(kConfig) naming header, value found and value needed when the
// region holds something else, before it has written anything.
bool LayOutOrAdoptCompat(std::span<std::byte> memory, bool stream);

// Everything wrong with a region, one sentence each ("command ring at 0x0: magic is 0x..., need
// 0x51deca9e"); empty when both ends could attach. Reads only. Stream rings may be absent, both.
std::vector<std::string> CompatProblems(std::span<const std::byte> memory);

// The stream rings by their magics, those of the 2 MiB place first; nullopt without.
std::optional<CompatStreamPlace> FindCompatStream(std::span<const std::byte> memory);

// The host's part: waits for the kernel's magics, at most `timeout_ns`, asleep by `config.sleeper`.
// Returns at once on a magic that is there and wrong or a header that is wrong behind its magic:
// CompatParts says what is the matter. Throws Error(kTryAgain) when no kernel lays the region out
// in time or the stop flag is set.
void AwaitCompatLayout(std::span<std::byte> memory, const CompatEndConfig& config,
                       std::int64_t timeout_ns);

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
