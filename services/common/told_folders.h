#pragma once

#include <string>

namespace tetrion {

// Folders that messages name. Each throws Error(kUsage), naming the option that chose the folder,
// for one that no message can carry: whose path is longer than wire::kMaxFolderBytes, no UTF-8, or
// has control characters.

// The run's own, below --runs-dir.
void CheckRunFolder(const std::string& folder);
// That of the shared regions, --shm-dir, as every process of this host names it, wherever it was
// started: absolute and without a slash at its end. Also throws where a ring's path in it would be
// longer than wire::kMaxRingPathBytes.
std::string ToldShmDir(const std::string& dir);

}  // namespace tetrion
