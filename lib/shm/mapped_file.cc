#include "lib/shm/mapped_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/interprocess/exceptions.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <utility>

#include "lib/shm/region_file.h"

namespace tetrion {
namespace {

namespace ipc = boost::interprocess;

// What mapped_region maps: a descriptor that is open already.
struct OpenDescriptor {
  ipc::mapping_handle_t get_mapping_handle() const {
    return ipc::ipcdetail::mapping_handle_from_file_handle(fd);
  }
  int fd;
};

FileDescriptor OpenReadWrite(const std::string& path, int extra_flags) {
  return FileDescriptor(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | extra_flags, 0600));
}

Error OpenError(const std::string& path, int error) {
  if (error == ENOENT) {
    return ErrnoError(ExitCode::kTryAgain, "cannot open " + path, error,
                      "start the other end first or check the path");
  }
  return ErrnoError(ExitCode::kUsage, "cannot open " + path + " for reading and writing", error,
                    "give this user permission or choose another file");
}

// Bytes to map: the size of a file or block device; what was asked for of a character device,
// whose driver refuses what it does not have.
std::size_t BytesOf(int fd, const std::string& path, std::size_t min_bytes,
                    std::size_t device_bytes) {
  struct stat status = {};
  if (fstat(fd, &status) != 0)
    throw ErrnoError(ExitCode::kUsage, "cannot stat " + path, errno, "choose another file");
  if (S_ISCHR(status.st_mode)) return std::max(min_bytes, device_bytes);
  if (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode)) {
    throw Error(ExitCode::kUsage, path +
                                      " cannot be mapped: it is neither a file nor a device; "
                                      "choose a file, for example in /dev/shm");
  }
  const off_t end = lseek(fd, 0, SEEK_END);
  const std::size_t have = end > 0 ? static_cast<std::size_t>(end) : 0;
  if (have < min_bytes) {
    throw Error(ExitCode::kUsage, path + " is too small: " + std::to_string(have) +
                                      " bytes, need at least " + std::to_string(min_bytes) +
                                      "; remove it or enlarge it");
  }
  // A file with holes would fault at first touch when its file system is full. A file system that
  // cannot fill holes has none, or there is no remedy: only ENOSPC is an error.
  if (S_ISREG(status.st_mode) && fallocate(fd, 0, 0, end) != 0 && errno == ENOSPC) {
    throw ErrnoError(ExitCode::kTryAgain, "cannot fill the holes of " + path, ENOSPC,
                     "make room in its file system");
  }
  return have;
}

void AllocateWhole(int fd, const std::string& path, std::size_t bytes) {
  int error = EINTR;
  while (error == EINTR) error = posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (error != 0) {
    throw ErrnoError(error == ENOSPC ? ExitCode::kTryAgain : ExitCode::kUsage,
                     "cannot allocate " + std::to_string(bytes) + " bytes for " + path, error,
                     "make room in its file system or choose another file");
  }
}

}  // namespace

struct MappedFile::Impl {
  std::string path;
  FileDescriptor file;
  ipc::mapped_region mapping;

  static std::unique_ptr<Impl> Map(const std::string& path, FileDescriptor file,
                                   std::size_t min_bytes, std::size_t device_bytes) {
    const std::size_t bytes = BytesOf(file.get(), path, min_bytes, device_bytes);
    try {
      auto impl = std::make_unique<Impl>();
      impl->mapping = ipc::mapped_region(OpenDescriptor{file.get()}, ipc::read_write, 0, bytes);
      impl->path = path;
      impl->file = std::move(file);
      return impl;
    } catch (const ipc::interprocess_exception& error) {
      throw Error(ExitCode::kUsage, path + " cannot be mapped (" + std::to_string(bytes) +
                                        " bytes): " + error.what() +
                                        "; choose a file that can, for example in /dev/shm");
    }
  }
};

MappedFile::MappedFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MappedFile::MappedFile(MappedFile&&) noexcept = default;
MappedFile& MappedFile::operator=(MappedFile&&) noexcept = default;
MappedFile::~MappedFile() = default;

MappedFile MappedFile::Open(const std::string& path, std::size_t min_bytes,
                            std::size_t device_bytes) {
  FileDescriptor file = OpenReadWrite(path, 0);
  if (!file.valid()) throw OpenError(path, errno);
  return MappedFile(Impl::Map(path, std::move(file), min_bytes, device_bytes));
}

MappedFile MappedFile::OpenOrCreate(const std::string& path, std::size_t bytes,
                                    std::size_t min_bytes) {
  FileDescriptor file = OpenReadWrite(path, O_CREAT);
  // A directory is refused O_CREAT; say what it is.
  if (!file.valid() && errno == EISDIR) return Open(path, min_bytes, bytes);
  if (!file.valid()) throw OpenError(path, errno);
  struct stat status = {};
  if (fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_size == 0) {
    AllocateWhole(file.get(), path, bytes);
  }
  return MappedFile(Impl::Map(path, std::move(file), min_bytes, bytes));
}

ByteLock MappedFile::LockByte(std::uint64_t offset) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(offset);
  lock.l_len = 1;
  if (fcntl(impl_->file.get(), F_OFD_SETLK, &lock) == 0) return ByteLock::kLocked;
  return errno == EAGAIN || errno == EACCES ? ByteLock::kHeldElsewhere : ByteLock::kUnsupported;
}

std::byte* MappedFile::data() const {
  return static_cast<std::byte*>(impl_->mapping.get_address());
}
std::size_t MappedFile::bytes() const {
  return impl_->mapping.get_size();
}
const std::string& MappedFile::path() const {
  return impl_->path;
}

}  // namespace tetrion
