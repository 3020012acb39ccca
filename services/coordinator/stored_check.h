#pragma once

#include <cstdint>
#include <string>

#include "services/coordinator/store.h"

namespace tetrion::coordinator {

// What is wrong with a run that was read from the store, as one clause; empty: nothing. `episodes`:
// those in the store's reports and those removed from it. A store that contradicts itself would
// count tokens twice or give numbers out again, so it is not resumed.
std::string Contradiction(const StoredRun& run, std::uint64_t episodes);

}  // namespace tetrion::coordinator
