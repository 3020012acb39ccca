#include "lib/shm/region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/file.h"
#include "lib/core/log.h"
#include "lib/shm/region_file.h"
#include "lib/shm/region_header.h"
#include "lib/shm/shm_dir.h"

namespace tetrion {
namespace {

namespace ipc = boost::interprocess;

// What mapped_region maps: our descriptor as it is, where file_mapping would open the name anew.
class OpenFile {
 public:
  explicit OpenFile(int fd) : fd_(fd) {}
  ipc::mapping_handle_t get_mapping_handle() const {
    return ipc::ipcdetail::mapping_handle_from_file_handle(fd_);
  }

 private:
  int fd_;
};

// The first page of a file, read.
class HeaderPage {
 public:
  // Throws Error(kTryAgain).
  HeaderPage(int fd, const std::string& path) {
    if (pread(fd, bytes_, sizeof bytes_, 0) == ssize_t{sizeof bytes_}) return;
    throw ErrnoError(ExitCode::kTryAgain, "cannot read the header of " + path, errno,
                     "remove the region");
  }
  const RegionHeader& header() const { return *reinterpret_cast<const RegionHeader*>(bytes_); }

 private:
  alignas(RegionHeader) std::byte bytes_[kRegionHeaderBytes];
};

// Maps the whole file and makes every page present, so that no thread faults while working.
ipc::mapped_region MapWhole(int fd, const std::string& path, std::uint64_t bytes) {
  try {
    ipc::mapped_region mapping(OpenFile(fd), ipc::read_write, 0, bytes);
    if (madvise(mapping.get_address(), mapping.get_size(), MADV_POPULATE_WRITE) == 0)
      return mapping;
    if (errno != EINVAL) {
      throw Shortage(
          ErrnoError(ExitCode::kTryAgain, "cannot get the memory of " + path, errno,
                     "the file has holes or the machine is short of memory; remove the region"));
    }
    // Kernels before 5.14: a read maps a page that posix_fallocate has made.
    const auto* bytes_of = static_cast<const volatile std::byte*>(mapping.get_address());
    for (std::size_t i = 0; i < mapping.get_size(); i += kRegionHeaderBytes) {
      static_cast<void>(bytes_of[i]);
    }
    return mapping;
  } catch (const ipc::interprocess_exception& error) {
    throw Shortage(Error(ExitCode::kTryAgain, "cannot map " + std::to_string(bytes) + " bytes of " +
                                                  path + ": " + error.what() +
                                                  "; check memory and ulimit -v"));
  }
}

std::string FolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

void SetOwner(RegionHeader& header) {
  header.owner_start_ticks.store(OwnStartTicks(), std::memory_order_relaxed);
  header.owner_pid.store(static_cast<std::uint32_t>(getpid()), std::memory_order_relaxed);
}

}  // namespace

struct Region::Impl {
  std::string path;
  FileDescriptor file;  // not valid: anonymous
  ipc::mapped_region mapping;
  bool owner = false;

  RegionHeader& header() const { return *static_cast<RegionHeader*>(mapping.get_address()); }

  // Null, with the reason, while there is nothing to attach to.
  static std::unique_ptr<Impl> Attach(const std::string& path, RegionKind kind,
                                      const AttachNeeds& needs, std::string& not_ready);
  // Maps an allocated file, empty so far, with this process as its owner; keeps no descriptor.
  static std::unique_ptr<Impl> MapNew(int fd, const std::string& path, RegionKind kind,
                                      std::uint64_t bytes, std::uint64_t run_id,
                                      std::uint64_t spec_hash);
  // The functions below expect the caller to hold the ShmDirLock.
  static std::unique_ptr<Impl> Create(const std::string& path, RegionKind kind, std::uint64_t bytes,
                                      std::uint64_t run_id, std::uint64_t spec_hash);
  static std::unique_ptr<Impl> Adopt(const std::string& path, RegionKind kind, std::uint64_t bytes,
                                     std::uint64_t run_id, std::uint64_t spec_hash,
                                     std::string& not_ready);
};

std::unique_ptr<Region::Impl> Region::Impl::Attach(const std::string& path, RegionKind kind,
                                                   const AttachNeeds& needs,
                                                   std::string& not_ready) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->file = OpenNoFollow(path, O_RDWR);
  if (!impl->file.valid()) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
      throw Shortage(ErrnoError(ExitCode::kTryAgain, "cannot open the shared region " + path, errno,
                                "raise the limit of open files (ulimit -n) or free memory"));
    }
    if (errno != ENOENT) {
      throw ErrnoError(ExitCode::kUsage, "cannot open the shared region " + path, errno,
                       "it must be a plain file of this user; remove what is in its place");
    }
    not_ready = path + " does not exist: its owner has not made it yet, or it is gone";
    return nullptr;
  }
  const std::uint64_t file_bytes = CheckRegionFile(impl->file.get(), path, not_ready);
  if (!not_ready.empty()) return nullptr;
  // Judged before its memory is asked for, which mapping does, and again where it can change.
  const HeaderPage page(impl->file.get(), path);
  CheckRegionHeader(page.header(), path, file_bytes, kind, needs, not_ready);
  if (!not_ready.empty()) return nullptr;
  impl->mapping = MapWhole(impl->file.get(), path, file_bytes);
  CheckRegionHeader(impl->header(), path, file_bytes, kind, needs, not_ready);
  if (!not_ready.empty()) return nullptr;
  return impl;
}

std::unique_ptr<Region::Impl> Region::Impl::MapNew(int fd, const std::string& path, RegionKind kind,
                                                   std::uint64_t bytes, std::uint64_t run_id,
                                                   std::uint64_t spec_hash) {
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->mapping = MapWhole(fd, path, bytes);
  impl->owner = true;
  RegionHeader& header = impl->header();
  header.version = kRegionVersion;
  header.kind = static_cast<std::uint32_t>(kind);
  header.total_bytes = bytes;
  header.run_id = run_id;
  header.spec_hash = spec_hash;
  header.checksum = RegionHeaderChecksum(header);
  const std::string boot_id = BootId();
  std::snprintf(header.boot_id, sizeof header.boot_id, "%s", boot_id.c_str());
  SetOwner(header);
  return impl;
}

std::unique_ptr<Region::Impl> Region::Impl::Create(const std::string& path, RegionKind kind,
                                                   std::uint64_t bytes, std::uint64_t run_id,
                                                   std::uint64_t spec_hash) {
  TETRION_CHECK(bytes >= kRegionHeaderBytes, "a region is at least its header");
  FileDescriptor file = OpenNoFollow(path, O_RDWR | O_CREAT | O_EXCL);
  if (!file.valid()) {
    throw ErrnoError(CodeOfFault(errno, ExitCode::kUsage),
                     "cannot create the shared region " + path, errno,
                     "check the --shm-dir and that no other process of the run uses the name");
  }
  try {
    if (!TryOwn(file.get(), path)) {
      throw Error(ExitCode::kTryAgain, "another process locked " + path +
                                           " while it was made; start again, with a --shm-dir of "
                                           "your own");
    }
    AllocateFile(file.get(), path, bytes);
    std::unique_ptr<Impl> impl = MapNew(file.get(), path, kind, bytes, run_id, spec_hash);
    impl->file = std::move(file);
    return impl;
  } catch (...) {
    unlink(path.c_str());
    throw;
  }
}

std::unique_ptr<Region::Impl> Region::Impl::Adopt(const std::string& path, RegionKind kind,
                                                  std::uint64_t bytes, std::uint64_t run_id,
                                                  std::uint64_t spec_hash, std::string& not_ready) {
  std::unique_ptr<Impl> impl =
      Attach(path, kind, {.run_id = run_id, .spec_hash = spec_hash, .bytes = bytes}, not_ready);
  if (!impl) return nullptr;
  if (!TryOwn(impl->file.get(), path)) {
    throw Error(ExitCode::kTryAgain,
                path + " has a live owner; stop that process first (./tetrion doctor names it)");
  }
  impl->owner = true;
  SetOwner(impl->header());
  return impl;
}

Region::Region(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Region::Region(Region&&) noexcept = default;
Region& Region::operator=(Region&&) noexcept = default;
Region::~Region() = default;

Region Region::Create(const std::string& dir, const std::string& name, RegionKind kind,
                      std::uint64_t bytes, std::uint64_t run_id, std::uint64_t spec_hash) {
  const ShmDirLock lock(dir);
  return Region(Impl::Create(dir + "/" + name, kind, bytes, run_id, spec_hash));
}

Region Region::Attach(const std::string& path, RegionKind kind, const AttachNeeds& needs) {
  std::string not_ready;
  std::unique_ptr<Impl> impl = Impl::Attach(path, kind, needs, not_ready);
  if (!impl) throw Error(ExitCode::kTryAgain, not_ready);
  Region region(std::move(impl));
  if (needs.live_owner && !region.OwnerAlive()) {
    throw Error(ExitCode::kTryAgain, path + " is stale: its owner is dead; start it again");
  }
  return region;
}

std::optional<Region> Region::AttachIfReady(const std::string& path, RegionKind kind,
                                            const AttachNeeds& needs) {
  std::string not_ready;
  std::unique_ptr<Impl> impl = Impl::Attach(path, kind, needs, not_ready);
  if (!impl) return std::nullopt;
  return Region(std::move(impl));
}

Region Region::Adopt(const std::string& dir, const std::string& name, RegionKind kind,
                     std::uint64_t bytes, std::uint64_t run_id, std::uint64_t spec_hash) {
  const ShmDirLock lock(dir);
  std::string not_ready;
  std::unique_ptr<Impl> impl =
      Impl::Adopt(dir + "/" + name, kind, bytes, run_id, spec_hash, not_ready);
  if (!impl) throw Error(ExitCode::kTryAgain, not_ready);
  return Region(std::move(impl));
}

Region Region::CreateOrAdopt(const std::string& dir, const std::string& name, RegionKind kind,
                             std::uint64_t bytes, std::uint64_t run_id, std::uint64_t spec_hash) {
  const ShmDirLock lock(dir);
  const std::string path = dir + "/" + name;
  std::string not_ready;
  std::unique_ptr<Impl> impl;
  std::optional<DamagedRegion> damage;
  try {
    impl = Impl::Adopt(path, kind, bytes, run_id, spec_hash, not_ready);
  } catch (const DamagedRegion& error) {
    damage = error;
  }
  if (impl) return Region(std::move(impl));
  // A live creator may be laying the region out; no process can have attached after a dead one.
  if (const FileDescriptor left = OpenNoFollow(path, O_RDWR); left.valid()) {
    if (!TryOwn(left.get(), path)) {
      if (damage) {
        throw Error(ExitCode::kTryAgain, std::string(damage->what()) + " (its owner lives)");
      }
      throw Error(ExitCode::kTryAgain, path + " has a live owner that is just starting");
    }
    if (damage) {
      log::warn("{} is damaged and its owner dead: it is made anew ({})", path, damage->what());
    }
    unlink(path.c_str());
  }
  return Region(Impl::Create(path, kind, bytes, run_id, spec_hash));
}

Region Region::CreateAnonymous(RegionKind kind, std::uint64_t bytes, std::uint64_t run_id,
                               std::uint64_t spec_hash, const std::string& what) {
  TETRION_CHECK(bytes >= kRegionHeaderBytes, "a region is at least its header");
  const std::string name = "memory of " + what;
  const FileDescriptor file(memfd_create(what.c_str(), MFD_CLOEXEC));
  if (!file.valid()) {
    throw ErrnoError(ExitCode::kTryAgain, "cannot make the " + name, errno,
                     "raise the limit of open files (ulimit -n) or free memory");
  }
  AllocateMemory(file.get(), name, bytes);
  return Region(Impl::MapNew(file.get(), name, kind, bytes, run_id, spec_hash));
}

void Region::Seal() {
  TETRION_CHECK(impl_->owner, "only the owner seals a region");
  header().magic.store(kRegionMagic, std::memory_order_release);  // pairs with Attach
}

bool Region::sealed() const {
  return header().magic.load(std::memory_order_acquire) == kRegionMagic;
}

bool Region::OwnerAlive() const {
  return impl_->owner || LockedByOther(impl_->file.get());
}

bool Region::Named() const {
  struct stat named = {};
  struct stat mine = {};
  return lstat(impl_->path.c_str(), &named) == 0 && fstat(impl_->file.get(), &mine) == 0 &&
         named.st_ino == mine.st_ino && named.st_dev == mine.st_dev;
}

void Region::Unlink() {
  if (!impl_->file.valid()) return;
  const ShmDirLock lock(FolderOf(impl_->path));
  if (Named()) unlink(impl_->path.c_str());
}

bool Region::TryUnlink() {
  if (!impl_->file.valid()) return true;
  const std::unique_ptr<ShmDirLock> lock = ShmDirLock::Try(FolderOf(impl_->path));
  if (lock == nullptr) return false;
  if (Named()) unlink(impl_->path.c_str());
  return true;
}

RegionHeader& Region::header() const {
  return impl_->header();
}
std::byte* Region::data() const {
  return static_cast<std::byte*>(impl_->mapping.get_address());
}
std::byte* Region::payload() const {
  return data() + kRegionHeaderBytes;
}
std::uint64_t Region::size() const {
  return impl_->mapping.get_size();
}
const std::string& Region::path() const {
  return impl_->path;
}
bool Region::is_owner() const {
  return impl_->owner;
}

}  // namespace tetrion
