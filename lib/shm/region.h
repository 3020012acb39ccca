#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "lib/core/error.h"
#include "lib/shm/region_header.h"

namespace tetrion {

// This process, or its machine, is short of open files or memory: no fault of the region. Its code
// is kTryAgain.
struct Shortage : Error {
  explicit Shortage(const Error& error) : Error(error) {}
};

// One mapped file in the shared folder. The owner holds the file's exclusive flock for life: the
// kernel drops it when the process ends, however it ends, and that is how others see death.
//
// Thread role: construction, Unlink and destruction belong to one thread; OwnerAlive and the
// header's atomics may be used by any. The mapping is fully allocated and pre-faulted: touching it
// never fails for want of memory. Contents are untrusted: other processes write here.
//
// Every function that creates, adopts or removes takes the ShmDirLock (blocks up to 30 s).
class Region {
 public:
  // Makes `dir`/`name` of `bytes` (header included) and locks it. The payload is zero. The creator
  // lays it out and then calls Seal; until then no process can attach.
  // Throws Error: kTryAgain when memory is short (naming bytes needed and free), kUsage when the
  // name is taken or the folder unusable.
  static Region Create(const std::string& dir, const std::string& name, RegionKind kind,
                       std::uint64_t bytes, std::uint64_t run_id, std::uint64_t spec_hash);
  // Maps an existing region of any owner, dead or alive. Throws Shortage, or Error: kTryAgain when
  // it is missing, removed, not sealed yet or (if asked) stale; kUsage
  // when it is not a plain file of this user with mode 0600; kConfig when it is truncated or
  // damaged, or version, kind, size, run or layout differ from what is needed, with both values.
  static Region Attach(const std::string& path, RegionKind kind, const AttachNeeds& needs = {});
  // The same, but nullopt while the region is missing, removed or not sealed yet. Does not look at
  // the owner.
  static std::optional<Region> AttachIfReady(const std::string& path, RegionKind kind,
                                             const AttachNeeds& needs = {});
  // Becomes the owner of a dead owner's sealed region. Throws like Attach; kTryAgain when the owner
  // lives; kConfig when size or layout differ: an adopted region is never rebuilt under its
  // readers.
  static Region Adopt(const std::string& dir, const std::string& name, RegionKind kind,
                      std::uint64_t bytes, std::uint64_t run_id, std::uint64_t spec_hash);
  // Adopt if a sealed region is there, else Create, as one step under the lock. Removes one whose
  // creator died before Seal, and, with a line of the log, a damaged one whose owner is dead: those
  // that have it mapped see that its name is gone. kTryAgain when the owner lives, also of a
  // damaged one. `sealed()` tells whether it was adopted.
  static Region CreateOrAdopt(const std::string& dir, const std::string& name, RegionKind kind,
                              std::uint64_t bytes, std::uint64_t run_id, std::uint64_t spec_hash);

  // Memory of this process alone: no file, no folder, no lock, and nothing is left when the process
  // ends, however it ends. Not sealed, otherwise as after Create; path() is "memory of `what`".
  // Throws Error(kTryAgain) when memory is short, naming the bytes needed and available.
  static Region CreateAnonymous(RegionKind kind, std::uint64_t bytes, std::uint64_t run_id,
                                std::uint64_t spec_hash, const std::string& what);

  Region(Region&&) noexcept;
  Region& operator=(Region&&) noexcept;
  // Unmaps and drops the lock; the file stays.
  ~Region();

  // Owner. Publishes the laid-out region; pairs with the magic's acquire load in Attach.
  void Seal();
  bool sealed() const;

  // Whether some process holds the owner's flock. Never blocks; true for the owner itself.
  bool OwnerAlive() const;
  // Whether the path still names this region's file; never for an anonymous one. Two system calls;
  // any thread.
  bool Named() const;
  // Removes the file if the path still names it; the mapping stays usable. May be called twice.
  // Nothing to do for an anonymous region.
  void Unlink();
  // The same without blocking. False while another process holds the ShmDirLock: ask again.
  [[nodiscard]] bool TryUnlink();

  RegionHeader& header() const;
  std::byte* data() const;     // start of the mapping, page-aligned
  std::byte* payload() const;  // data() + kRegionHeaderBytes
  std::uint64_t size() const;  // bytes of the mapping, header included
  const std::string& path() const;
  bool is_owner() const;

 private:
  struct Impl;
  explicit Region(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace tetrion
