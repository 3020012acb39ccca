#pragma once

#include <cstdint>

#include "services/coordinator/sqlite.h"

namespace tetrion::coordinator {

// Raised with every change of the tables or of what they hold, so that older releases refuse the
// file. Those that can be made into the present one:
//   2: reports are arrays of wire::EpisodeReport only, without the columns of episode_blob.h.
//   3: ranges whose tokens are all done are kept, marked `complete`, and those removed are counted.
inline constexpr std::uint64_t kOldestStoreLayout = 2;
inline constexpr std::uint64_t kStoreLayout = 4;

// Sets up the connection, makes those of the store's tables that the file lacks, and an older
// layout into the present one, whole or not at all. Throws Error(kConfig), before a table is
// touched, for a file of a layout that this build does not know; StorePaused for what may pass.
void PrepareTables(Database& database);

}  // namespace tetrion::coordinator
