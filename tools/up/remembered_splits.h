#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "tools/up/core_split.h"
#include "tools/up/up_options.h"

namespace tetrion {

// The "model name" that /proc/cpuinfo has, or what tells processors apart where it has none.
std::string ProcessorIn(const std::string& cpuinfo);

// Settings that a resume may change, and that take time.
inline constexpr std::array kCostlySettings = {"precision", "reuse",   "minibatches",
                                               "max_lag",   "horizon", "train_ratio"};

// What the best split depends on, in words: processor and usable cores, version and preset of this
// build, what of the run's settings takes time, who plays, an actor's most workers, and what a
// config file says to actors and learner. Not in it: the revision, so that not each measures anew;
// the model of the device; the seed, settings of learning that cost nothing, and replay slots,
// which follow the split. Throws as ReadConfigFile.
std::string SplitKey(const UpOptions& options, const RunConfig& config,
                     const std::string& processor, int cores, int most_workers);

// The file of the splits that were measured, newest last: {"splits": [{"for": key, "workers": 2,
// "threads": 8}]}. It may be removed at any time. What is wrong with it is a warning:
// a damaged file holds nothing and is replaced, one that cannot be read stays as it is. Processes
// may share it: the file takes its place by rename, and of two that write at a time one is
// forgotten. One thread; blocks on the disk.
class RememberedSplits {
 public:
  static constexpr std::size_t kMost = 100;  // the oldest is forgotten then

  explicit RememberedSplits(std::string path) : path_(std::move(path)) {}
  // "$XDG_CACHE_HOME/tetrion/core-splits.json", or below ~/.cache; empty where neither that
  // variable (an absolute path) nor HOME is set: then nothing is remembered.
  static std::string DefaultPath();

  std::optional<CoreSplit> Find(const std::string& key) const;
  // False where the file cannot be read or written.
  bool Remember(const std::string& key, const CoreSplit& split) const;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace tetrion
