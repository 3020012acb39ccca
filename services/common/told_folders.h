#pragma once

#include <string>

namespace tetrion {

// Folders that messages name. Each throws Error(kUsage), naming the option that chose the folder,
// for one that no message can carry: whose path is longer than wire::kMaxFolderBytes, no UTF-8, or
// has control characters.

// The run's own, below --runs-dir.
void CheckRunFolder(const std::string& folder);
// That of the shared regions, --shm-dir. Also throws where a ring's path in it would be longer than
// wire::kMaxRingPathBytes.
void CheckShmDir(const std::string& dir);

}  // namespace tetrion
