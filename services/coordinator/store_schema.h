#pragma once

#include <cstdint>

#include "services/coordinator/sqlite.h"

namespace tetrion::coordinator {

// Raised with every change of the tables or of what they hold, so that older releases refuse the
// file. Layout 2 lacks only the columns of episode_blob.h: Store::Load makes it one of this layout.
inline constexpr std::uint64_t kStoreLayout = 3;

// Sets up the connection and makes those of the store's tables that the file lacks. Throws
// Error(kConfig), before a table is touched, for a file of a layout that this build does not know;
// StorePaused for what may pass.
void PrepareTables(Database& database);

}  // namespace tetrion::coordinator
