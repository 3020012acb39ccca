#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "lib/wire/curve_keys.h"

namespace tetrion::wire {

// The public keys that may connect: the *.pub files of a folder, which its owner changes while the
// server runs. Every question looks at the folder first, so that a key is allowed from the moment
// its file is whole, and refused from the moment it is gone. A folder that cannot be read allows no
// key.
//
// A look costs a stat a file: some 10 microseconds for ten keys. One thread at a time.
class AllowList {
 public:
  // Files beyond these are ignored, with a line in the log.
  static constexpr std::size_t kMaxKeys = 4096;

  // Throws Error(kUsage) when the folder cannot be read now. Broken files are named in the log and
  // ignored.
  explicit AllowList(std::string folder);
  AllowList(const AllowList&) = delete;
  AllowList& operator=(const AllowList&) = delete;

  // The name of the file, without ".pub", that allows `key`; nothing when none does.
  std::optional<std::string> Find(const KeyBytes& key);
  std::size_t size() const { return keys_.size(); }
  const std::string& folder() const { return folder_; }

 private:
  // What tells one content of a file from the next.
  struct Stamp {
    ino_t inode = 0;
    off_t bytes = 0;
    std::int64_t modified_ns = 0, changed_ns = 0;
    bool operator==(const Stamp&) const = default;
  };
  using Files = std::map<std::string, Stamp>;

  // False, with errno, when the folder cannot be read.
  bool List(Files& files) const;
  void Refresh();
  void ReadAll(const Files& files);

  const std::string folder_;
  Files files_;
  std::map<KeyBytes, std::string> keys_;  // -> name
  bool readable_ = true;
};

}  // namespace tetrion::wire
