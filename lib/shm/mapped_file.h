#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tetrion {

enum class [[nodiscard]] ByteLock {
  kLocked,
  kHeldElsewhere,  // by another open of the file, in any process
  kUnsupported,    // the file system or device has no locks
};

// A file of any maker, mapped shared and writable: a plain file, a file in /dev/shm, QEMU's ivshmem
// memory, a device. Unlike Region it has no header, no owner and no fixed folder. One thread
// constructs, locks and destroys; any thread may use the memory.
class MappedFile {
 public:
  // Maps an existing file of at least `min_bytes`, all of it. A character device has no size: of
  // it `device_bytes` are mapped, or `min_bytes` if that is more.
  // Throws Error: kTryAgain when it does not exist; kUsage when it is too small (with the bytes
  // there and the bytes needed), is no file that can be mapped, or may not be opened read-write.
  static MappedFile Open(const std::string& path, std::size_t min_bytes,
                         std::size_t device_bytes = 0);
  // Creates a plain file of `bytes` zeros, every one allocated, with mode 0600; one that exists
  // and is empty is filled up to `bytes`, any other is opened as by Open with `min_bytes`, a
  // device with `bytes`.
  static MappedFile OpenOrCreate(const std::string& path, std::size_t bytes, std::size_t min_bytes);

  MappedFile(MappedFile&&) noexcept;
  MappedFile& operator=(MappedFile&&) noexcept;
  // Unmaps and drops the locks; the file stays.
  ~MappedFile();

  // Locks byte `offset` of the file exclusively until destruction or death, without touching it (a
  // lock of the open file description). Never blocks; locking a byte twice is kLocked.
  ByteLock LockByte(std::uint64_t offset);

  std::byte* data() const;  // page-aligned
  std::size_t bytes() const;
  const std::string& path() const;

 private:
  struct Impl;
  explicit MappedFile(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace tetrion
