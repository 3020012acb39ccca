#include "lib/cuda/sim/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "lib/core/align.h"
#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/cuda/sim/sanitizers.h"

namespace tetrion::cuda::sim {
namespace {

constexpr std::size_t kPageBytes = 4096;
// What faults around a buffer: addresses only, so that an index that is far off is caught, too.
constexpr std::size_t kGuardBytes = 1 << 16;
constexpr unsigned char kFill = 0xFD;

std::string Bytes(std::size_t bytes) {
  return std::to_string(bytes) + " bytes";
}

}  // namespace

std::size_t Memory::FillBytes(const Buffer& buffer) const {
  return AlignUp(buffer.bytes, kAlignBytes) - buffer.bytes;
}

void* Memory::Allocate(std::size_t bytes, MemoryKind kind) {
  const std::size_t rounded = AlignUp(bytes, kAlignBytes);
  if (kind == MemoryKind::kDevice && rounded > free_bytes()) return nullptr;
  const std::size_t inner = AlignUp(rounded, kPageBytes);
  const std::size_t whole = inner + 2 * kGuardBytes;
  void* mapping = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  auto* first = static_cast<std::byte*>(mapping);
  if (mprotect(first + kGuardBytes, inner, PROT_READ | PROT_WRITE) != 0) {
    (void)munmap(mapping, whole);
    return nullptr;
  }
  std::byte* data = first + kGuardBytes + (inner - rounded);
  const Buffer buffer = {bytes, kind, first, whole};
  std::memset(data, kFresh, bytes);
  std::memset(data + bytes, kFill, FillBytes(buffer));
  ForbidAccess(kind == MemoryKind::kDevice ? data : data + bytes,
               kind == MemoryKind::kDevice ? rounded : FillBytes(buffer));
  live_.emplace(data, buffer);
  if (kind == MemoryKind::kDevice) used_bytes_ += rounded;
  return data;
}

void Memory::Free(void* data) {
  const auto found = live_.find(static_cast<const std::byte*>(data));
  TETRION_CHECK(found != live_.end(), "freed memory was allocated here");
  const Buffer buffer = found->second;
  AllowAccess(buffer.mapping, buffer.mapping_bytes);
  // Gives the pages back and keeps the addresses.
  void* kept = mmap(buffer.mapping, buffer.mapping_bytes, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  TETRION_CHECK(kept != MAP_FAILED, "a mapping of ours can be replaced");
  if (buffer.kind == MemoryKind::kDevice) used_bytes_ -= AlignUp(buffer.bytes, kAlignBytes);
  freed_.emplace_back(found->first, buffer);
  live_.erase(found);
  if (freed_.size() > kQuarantined) {
    (void)munmap(freed_.front().second.mapping, freed_.front().second.mapping_bytes);
    freed_.erase(freed_.begin());
  }
}

Memory::Buffers::const_iterator Memory::Containing(const void* data) const {
  auto after = live_.upper_bound(static_cast<const std::byte*>(data));
  if (after == live_.begin()) return live_.end();
  --after;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(data) - after->first);
  return offset < after->second.bytes ? after : live_.end();
}

MemoryKind Memory::KindOf(const void* data) const {
  const auto found = Containing(data);
  return found == live_.end() ? MemoryKind::kPageable : found->second.kind;
}

bool Memory::IsDevice(const void* data, std::size_t bytes) const {
  const auto found = Containing(data);
  if (found == live_.end() || found->second.kind != MemoryKind::kDevice) return false;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(data) - found->first);
  return bytes <= found->second.bytes - offset;
}

void Memory::Open() {
  for (const auto& [data, buffer] : live_) AllowAccess(data, buffer.bytes);
}

void Memory::Close() {
  for (const auto& [data, buffer] : live_) {
    if (buffer.kind == MemoryKind::kDevice) ForbidAccess(data, buffer.bytes);
  }
}

std::optional<std::string> Memory::Overrun() const {
  for (const auto& [data, buffer] : live_) {
    const std::byte* fill = data + buffer.bytes;
    AllowAccess(fill, FillBytes(buffer));
    const bool intact = std::all_of(fill, fill + FillBytes(buffer),
                                    [](std::byte byte) { return byte == std::byte{kFill}; });
    ForbidAccess(fill, FillBytes(buffer));
    if (!intact) return "writes past the end of a buffer of " + Bytes(buffer.bytes);
  }
  return {};
}

std::optional<std::string> Memory::Describe(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  const auto within = [byte](const Buffer& buffer) {
    return byte >= buffer.mapping && byte < buffer.mapping + buffer.mapping_bytes;
  };
  for (const auto& [data, buffer] : live_) {
    if (!within(buffer)) continue;
    if (byte < data) return "lies in front of a buffer of " + Bytes(buffer.bytes);
    const auto offset = static_cast<std::size_t>(byte - data);
    if (offset < buffer.bytes) return "lies in a buffer of " + Bytes(buffer.bytes);
    return "lies " + Bytes(offset - buffer.bytes) + " past the end of a buffer of " +
           Bytes(buffer.bytes);
  }
  for (const auto& [data, buffer] : freed_) {
    if (within(buffer)) return "lies in a buffer of " + Bytes(buffer.bytes) + " that was freed";
  }
  return {};
}

}  // namespace tetrion::cuda::sim
