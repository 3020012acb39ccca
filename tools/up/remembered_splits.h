#pragma once

#include <optional>
#include <string>
#include <utility>

#include "tools/up/core_split.h"
#include "tools/up/up_options.h"

namespace tetrion {

// The "model name" that /proc/cpuinfo has, or what tells processors apart where it has none.
std::string ProcessorIn(const std::string& cpuinfo);

// What the best split depends on, in words: processor and usable cores, this build, what of the
// run's settings takes time, and who plays. Not in it: the seed, settings of learning that cost
// nothing, and replay slots, which follow the split.
std::string SplitKey(const UpOptions& options, const RunConfig& config,
                     const std::string& processor, int cores);

// The file of the splits that were measured, newest last: {"splits": [{"for": key, "workers": 2,
// "threads": 8}]}. It may be removed at any time. What is wrong with it is a warning, and then
// nothing is remembered. Processes may share it: the file takes its place by rename, and of two
// that write at a time one is forgotten. One thread; blocks on the disk.
class RememberedSplits {
 public:
  static constexpr std::size_t kMost = 100;  // the oldest is forgotten then

  explicit RememberedSplits(std::string path) : path_(std::move(path)) {}
  // "$XDG_CACHE_HOME/tetrion/core-splits.json", or below ~/.cache; empty where neither that
  // variable (an absolute path) nor HOME is set: then nothing is remembered.
  static std::string DefaultPath();

  std::optional<CoreSplit> Find(const std::string& key) const;
  // False where it could not be written.
  bool Remember(const std::string& key, const CoreSplit& split) const;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace tetrion
