#include "services/common/told_folders.h"

#include <cstdint>
#include <filesystem>
#include <limits>

#include "lib/core/error.h"
#include "lib/core/text_forms.h"
#include "lib/shm/shm_dir.h"
#include "lib/wire/messages.h"

namespace tetrion {
namespace {

// As messages name it.
std::string Absolute(const std::string& folder) {
  return std::filesystem::absolute(folder).string();
}

void CheckFolder(const std::string& option, const std::string& what, const std::string& path,
                 std::size_t most) {
  if (!IsPlainText(path)) {
    throw Error(ExitCode::kUsage, option + ": the path of " + what +
                                      " is no UTF-8 text, or has control characters: choose "
                                      "another folder");
  }
  if (path.size() <= most) return;
  throw Error(ExitCode::kUsage, option + ": the path of " + what + " has " +
                                    std::to_string(path.size()) + " bytes, at most " +
                                    std::to_string(most) +
                                    " are possible: choose a folder with a shorter one");
}

// The path of the ring with the longest name, without the folder: "/" and the name.
std::size_t LongestRingBytes() {
  constexpr auto kMost = std::numeric_limits<std::uint32_t>::max();
  return 1 + StreamName(0, std::numeric_limits<std::int32_t>::max(), kMost, kMost).size();
}

}  // namespace

void CheckRunFolder(const std::string& folder) {
  CheckFolder("--runs-dir", "the run's folder", Absolute(folder), wire::kMaxFolderBytes);
}

std::string ToldShmDir(const std::string& dir) {
  std::filesystem::path path = std::filesystem::path(Absolute(dir)).lexically_normal();
  if (!path.has_filename() && path.has_relative_path()) path = path.parent_path();
  CheckFolder("--shm-dir", "the folder of shared regions", path.string(),
              wire::kMaxRingPathBytes - LongestRingBytes());
  return path.string();
}

}  // namespace tetrion
