#include "lib/wire/allow_list.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"

namespace tetrion::wire {
namespace {

constexpr std::string_view kSuffix = ".pub";

std::int64_t ToNs(const timespec& time) {
  return time.tv_sec * kNanosPerSecond + time.tv_nsec;
}

}  // namespace

AllowList::AllowList(std::string folder) : folder_(std::move(folder)) {
  Files files;
  if (!List(files)) {
    throw Error(ExitCode::kUsage, "cannot read the folder of allowed keys " + folder_ + ": " +
                                      std::strerror(errno) +
                                      "; --curve-allow names a folder with the NAME.pub of every "
                                      "process that may connect");
  }
  ReadAll(files);
}

std::optional<std::string> AllowList::Find(const KeyBytes& key) {
  Refresh();
  const auto found = keys_.find(key);
  if (found == keys_.end()) return std::nullopt;
  return found->second;
}

bool AllowList::List(Files& files) const {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(folder_.c_str()), closedir);
  if (folder == nullptr) return false;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    if (name.size() <= kSuffix.size() || !name.ends_with(kSuffix)) continue;
    struct stat status = {};
    if (fstatat(dirfd(folder.get()), entry->d_name, &status, 0) != 0) continue;  // gone by now
    files[name] = {.inode = status.st_ino,
                   .bytes = status.st_size,
                   .modified_ns = ToNs(status.st_mtim),
                   .changed_ns = ToNs(status.st_ctim)};
  }
  return true;
}

void AllowList::Refresh() {
  Files files;
  if (!List(files)) {
    if (std::exchange(readable_, false)) {
      log::error("cannot read the folder of allowed keys {}: {}; no new connection is accepted",
                 folder_, std::strerror(errno));
    }
    files_.clear();
    keys_.clear();
    return;
  }
  if (std::exchange(readable_, true) && files == files_) return;
  ReadAll(files);
}

void AllowList::ReadAll(const Files& files) {
  keys_.clear();
  for (const auto& [name, stamp] : files) {
    if (keys_.size() == kMaxKeys) {
      log::warn("{} has more than {} keys; the rest is ignored", folder_, kMaxKeys);
      break;
    }
    try {
      const std::string path = folder_ + "/" + name;
      keys_[DecodeKey(ReadPublicKey(path))] = name.substr(0, name.size() - kSuffix.size());
    } catch (const Error& error) {
      // The same broken file is named once, not with every change of another.
      const auto before = files_.find(name);
      if (before == files_.end() || before->second != stamp) log::warn("ignored: {}", error.what());
    }
  }
  files_ = files;
  log::info("{} keys may connect ({})", keys_.size(), folder_);
}

}  // namespace tetrion::wire
