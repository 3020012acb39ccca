#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "lib/shm/region_header.h"

namespace tetrion {

// What an attaching process insists on.
struct AttachNeeds {
  std::optional<std::uint64_t> run_id;     // refuse a region of another run
  std::optional<std::uint64_t> spec_hash;  // refuse another layout
  std::optional<std::uint64_t> bytes;      // refuse another size
  std::uint64_t min_bytes = 0;             // refuse a smaller region
  bool live_owner = false;                 // refuse a stale region, whose owner is dead
};

// The judgements of Region::Attach. Each either passes, or sets `not_ready` (nothing to attach to
// for now), or throws Error as Region::Attach says.

// Refuses what is no region file of ours before a byte of it is mapped. Returns its size in bytes.
std::uint64_t CheckRegionFile(int fd, const std::string& path, std::string& not_ready);

// Judges the mapped header; every field is read exactly once.
void CheckRegionHeader(const RegionHeader& header, const std::string& path,
                       std::uint64_t file_bytes, RegionKind kind, const AttachNeeds& needs,
                       std::string& not_ready);

// Of the fields that never change: what Create stores in `checksum`.
std::uint64_t RegionHeaderChecksum(const RegionHeader& header);

}  // namespace tetrion
