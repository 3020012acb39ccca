#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "lib/core/error.h"

namespace tetrion {

// First page of every region file. Fields without atomic are written before the magic and never
// again; `checksum` covers them.
//
//   0        8        16       24       32       40       48       56  60   64       72
//   | magic  |ver|kind| total  | run_id | spec   | check  | start  |pid|   0        | boot_id
//   ..112 |        |        | bytes  |        | hash   | sum    | time   |   |            |
//   reserved ..4096
//
// Bump kRegionVersion whenever a field moves or changes meaning; magic and version never move.
inline constexpr std::uint64_t kRegionMagic = 0x314E4F4952544554;  // "TETRION1" as bytes
inline constexpr std::uint32_t kRegionVersion = 1;
inline constexpr std::size_t kRegionHeaderBytes = 4096;

// What the payload is. Append only.
enum class RegionKind : std::uint32_t {
  kRing = 1,     // rows of one worker (spsc_ring.h)
  kLearner = 2,  // bells and weights slots (lib/weights/learner_region.h)
  kStream = 3,   // rows of one streamed worker and its action rings (lib/inference/stream_layout.h)
};

struct RegionHeader {
  std::atomic<std::uint64_t> magic;  // stored last with release; pairs with Attach's acquire
  std::uint32_t version;
  std::uint32_t kind;         // RegionKind
  std::uint64_t total_bytes;  // of the file
  std::uint64_t run_id;
  std::uint64_t spec_hash;                       // layout of the payload
  std::uint64_t checksum;                        // xxhash64 of bytes 8..39
  std::atomic<std::uint64_t> owner_start_ticks;  // /proc/<pid>/stat, field 22
  std::atomic<std::uint32_t> owner_pid;          // in the owner's pid namespace
  std::byte unused[12];                          // 0
  char boot_id[40];                              // of the creator's kernel, zero-terminated
  std::byte reserved[3984];                      // 0
};
static_assert(sizeof(RegionHeader) == kRegionHeaderBytes);
static_assert(offsetof(RegionHeader, version) == 8);
static_assert(offsetof(RegionHeader, kind) == 12);
static_assert(offsetof(RegionHeader, total_bytes) == 16);
static_assert(offsetof(RegionHeader, run_id) == 24);
static_assert(offsetof(RegionHeader, spec_hash) == 32);
static_assert(offsetof(RegionHeader, checksum) == 40);
static_assert(offsetof(RegionHeader, owner_start_ticks) == 48);
static_assert(offsetof(RegionHeader, owner_pid) == 56);
static_assert(offsetof(RegionHeader, unused) == 60);
static_assert(offsetof(RegionHeader, boot_id) == 72);
static_assert(offsetof(RegionHeader, reserved) == 112);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// What an attaching process insists on.
struct AttachNeeds {
  std::optional<std::uint64_t> run_id;     // refuse a region of another run
  std::optional<std::uint64_t> spec_hash;  // refuse another layout
  std::optional<std::uint64_t> bytes;      // refuse another size
  std::uint64_t min_bytes = 0;             // refuse a smaller region
  bool live_owner = false;                 // refuse a stale region, whose owner is dead
};

// A region that no build leaves so: its header is overwritten, or its file has not the size
// that the header says. Its code is kConfig.
struct DamagedRegion : Error {
  explicit DamagedRegion(const Error& error) : Error(error) {}
};

// The judgements of Region::Attach. Each either passes, or sets `not_ready` (nothing to attach to
// for now), or throws Error as Region::Attach says.

// Refuses what is no region file of ours before a byte of it is mapped. Returns its size in bytes.
std::uint64_t CheckRegionFile(int fd, const std::string& path, std::string& not_ready);

// Judges the mapped header; every field is read exactly once.
void CheckRegionHeader(const RegionHeader& header, const std::string& path,
                       std::uint64_t file_bytes, RegionKind kind, const AttachNeeds& needs,
                       std::string& not_ready);

// The owner that the header names, among the processes of all hosts: xxhash64 of boot_id, pid and
// start time. An adopted region has its old owner's for a moment after the lock was taken.
std::uint64_t RegionOwnerId(const RegionHeader& header);

// Of the fields that never change: what Create stores in `checksum`.
std::uint64_t RegionHeaderChecksum(const RegionHeader& header);

// Who owns a region, for people: with the pid, these tell a process from a later one of the same
// number. Both read /proc once; 0 and "" where it cannot be read.

// Start time of this process in clock ticks since boot.
std::uint64_t OwnStartTicks();
// Random name of the running kernel's boot, 36 characters.
std::string BootId();

}  // namespace tetrion
