#pragma once

#include <cstdint>
#include <string>

#include "services/coordinator/store.h"

namespace tetrion::coordinator {

// Rows of the store that a StoredRun does not carry, counted with those that were pruned.
struct StoredRows {
  std::uint64_t episodes = 0;
  std::uint64_t complete_ranges = 0;
};

// What is wrong with a run that was read from the store, as one clause; empty: nothing. A store
// that contradicts itself would count tokens twice or give numbers out again, so it is not resumed.
std::string Contradiction(const StoredRun& run, const StoredRows& rows);

}  // namespace tetrion::coordinator
