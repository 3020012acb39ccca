#include "lib/shm/region_header.h"

#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include "lib/core/error.h"
#include "lib/shm/region_file.h"

namespace tetrion {
namespace {

// The header's unchanging fields in private memory.
struct FixedFields {
  std::uint32_t version;
  std::uint32_t kind;
  std::uint64_t total_bytes;
  std::uint64_t run_id;
  std::uint64_t spec_hash;
};
static_assert(sizeof(FixedFields) ==
              offsetof(RegionHeader, checksum) - offsetof(RegionHeader, version));

// Volatile: a hostile writer may change a field after it was judged, so nothing is read twice.
template <typename T>
T ReadOnce(const T& field) {
  return *static_cast<const volatile T*>(&field);
}

FixedFields ReadFixed(const RegionHeader& header) {
  return {.version = ReadOnce(header.version),
          .kind = ReadOnce(header.kind),
          .total_bytes = ReadOnce(header.total_bytes),
          .run_id = ReadOnce(header.run_id),
          .spec_hash = ReadOnce(header.spec_hash)};
}

std::uint64_t Checksum(const FixedFields& fields) {
  return XXH64(&fields, sizeof fields, 0);
}

std::string Hex(std::uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%#llx", static_cast<unsigned long long>(value));
  return text;
}

Error HaveNeed(const std::string& path, const char* what, std::uint64_t have, std::uint64_t need) {
  return Error(ExitCode::kConfig, path + " has " + what + " " + Hex(have) + ", " + Hex(need) +
                                      " is needed; run the same build and settings everywhere, or "
                                      "remove the region");
}

DamagedRegion DamagedHeader(const std::string& path, const std::string& part) {
  return DamagedRegion(Error(ExitCode::kConfig, path + " has a damaged header (" + part +
                                                    "); remove it and restart its owner"));
}

Error WrongSize(const std::string& path, const char* what, std::uint64_t have, std::uint64_t need) {
  return Error(ExitCode::kConfig, path + " is " + what + ": " + std::to_string(have) + " bytes, " +
                                      std::to_string(need) +
                                      " are needed; remove it and restart its owner");
}

}  // namespace

std::uint64_t CheckRegionFile(int fd, const std::string& path, std::string& not_ready) {
  struct stat info = {};
  if (fstat(fd, &info) != 0) {
    throw ErrnoError(ExitCode::kUsage, "cannot look at " + path, errno, "check the --shm-dir");
  }
  if (!S_ISREG(info.st_mode)) {
    throw Error(ExitCode::kUsage, path + " is not a plain file; remove it");
  }
  if (info.st_uid != geteuid()) {
    throw Error(ExitCode::kUsage,
                path + " is foreign: it belongs to uid " + std::to_string(info.st_uid) +
                    ", not to " + std::to_string(geteuid()) + "; run all processes as one user");
  }
  if ((info.st_mode & 077) != 0) {
    throw Error(ExitCode::kUsage, path + " is open to other users; remove it");
  }
  if (info.st_nlink > 1) {
    throw Error(ExitCode::kUsage, path + " has a second name (hard link); remove both");
  }
  const auto bytes = static_cast<std::uint64_t>(info.st_size);
  if (info.st_nlink == 0) {
    not_ready = path + " has just been removed; its run is over";
  } else if (bytes < kRegionHeaderBytes) {
    not_ready = path + " is too small for a region (" + std::to_string(bytes) +
                " bytes): its owner has not finished making it; try again or remove it";
  }
  return bytes;
}

void CheckRegionHeader(const RegionHeader& header, const std::string& path,
                       std::uint64_t file_bytes, RegionKind kind, const AttachNeeds& needs,
                       std::string& not_ready) {
  const std::uint64_t magic = header.magic.load(std::memory_order_acquire);  // pairs with Seal
  if (magic == 0) {
    not_ready = path + " is not ready: its owner has not sealed it yet; try again";
    return;
  }
  if (magic != kRegionMagic) throw DamagedHeader(path, "magic " + Hex(magic));
  const FixedFields fields = ReadFixed(header);
  if (fields.version != kRegionVersion) {
    throw HaveNeed(path, "region version", fields.version, kRegionVersion);
  }
  if (ReadOnce(header.checksum) != Checksum(fields)) {
    throw DamagedHeader(path, "checksum");
  }
  const auto wanted_kind = static_cast<std::uint32_t>(kind);
  if (fields.kind != wanted_kind) throw HaveNeed(path, "kind", fields.kind, wanted_kind);
  if (fields.total_bytes != file_bytes) {
    const bool shorter = file_bytes < fields.total_bytes;
    throw DamagedRegion(WrongSize(path, shorter ? "truncated" : "longer than its header says",
                                  file_bytes, fields.total_bytes));
  }
  if (file_bytes < needs.min_bytes) throw WrongSize(path, "too small", file_bytes, needs.min_bytes);
  if (needs.run_id && fields.run_id != *needs.run_id) {
    throw HaveNeed(path, "run", fields.run_id, *needs.run_id);
  }
  if (needs.spec_hash && fields.spec_hash != *needs.spec_hash) {
    throw HaveNeed(path, "layout", fields.spec_hash, *needs.spec_hash);
  }
  if (needs.bytes && file_bytes != *needs.bytes) {
    throw WrongSize(path, "of another size", file_bytes, *needs.bytes);
  }
}

std::uint64_t RegionHeaderChecksum(const RegionHeader& header) {
  return Checksum(ReadFixed(header));
}

std::uint64_t RegionOwnerId(const RegionHeader& header) {
  struct {
    std::uint64_t start_ticks, pid;
    char boot_id[sizeof header.boot_id];
  } owner = {header.owner_start_ticks.load(std::memory_order_relaxed),
             header.owner_pid.load(std::memory_order_relaxed),
             {}};
  std::memcpy(owner.boot_id, header.boot_id, sizeof owner.boot_id);
  return XXH64(&owner, sizeof owner, 0);
}

std::uint64_t OwnStartTicks() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  // Field 2, the command in parentheses, may hold anything: count from its end. Start time is
  // field 22.
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream rest(line.substr(end + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) rest >> field;
  return rest ? std::stoull(field) : 0;
}

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

}  // namespace tetrion
