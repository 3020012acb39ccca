#include "lib/cuda/sim/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <span>

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

// [first, end) of the pages that hold some bytes.
struct Pages {
  std::uintptr_t first, end;
  bool Meet(const Pages& other) const { return first < other.end && other.first < end; }
};

Pages PagesOf(const void* data, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);  // an address, to be divided
  return {begin / kPageBytes, (begin + bytes - 1) / kPageBytes + 1};
}

// In front of the buffer that begins at `data`.
std::span<std::byte> FrontFill(const std::byte* data, const Memory::Buffer& buffer) {
  std::byte* const begin = buffer.mapping + kGuardBytes;
  return {begin, static_cast<std::size_t>(data - begin)};
}

std::span<std::byte> EndFill(const std::byte* data, const Memory::Buffer& buffer) {
  const std::byte* const end = data + buffer.bytes;
  return {buffer.mapping + (end - buffer.mapping),
          AlignUp(buffer.bytes, Memory::kAlignBytes) - buffer.bytes};
}

// Reads what AddressSanitizer forbids to others. By words, and by 32 of them without a branch: it
// runs behind every block, for every buffer.
__attribute__((no_sanitize("address", "thread"))) bool IsIntact(std::span<const std::byte> fill) {
  constexpr std::uint64_t kFillWord = 0x0101010101010101U * kFill;
  constexpr std::size_t kWords = Memory::kAlignBytes / 8;
  const std::byte* at = fill.data();
  const std::byte* const end = at + fill.size();
  std::uint64_t different = 0;
  for (; different == 0 && static_cast<std::size_t>(end - at) >= kWords * 8; at += kWords * 8) {
    for (std::size_t i = 0; i < kWords; ++i) {
      std::uint64_t word;
      std::memcpy(&word, at + i * 8, 8);
      different |= word ^ kFillWord;
    }
  }
  for (; at < end; ++at) different |= static_cast<std::uint64_t>(*at) ^ kFill;
  return different == 0;
}

}  // namespace

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
  for (const std::span<std::byte> fill : {FrontFill(data, buffer), EndFill(data, buffer)}) {
    std::memset(fill.data(), kFill, fill.size());
    ForbidAccess(fill.data(), fill.size());
  }
  if (kind == MemoryKind::kDevice) ForbidAccess(data, bytes);
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

bool Memory::Pin(const void* data, std::size_t bytes) {
  const Pages pages = PagesOf(data, bytes);
  for (const auto& [first, range_bytes] : ranges_) {
    if (pages.Meet(PagesOf(first, range_bytes))) return false;
  }
  for (const auto& [first, buffer] : live_) {
    if (pages.Meet(PagesOf(first, buffer.bytes))) return false;
  }
  ranges_.emplace(static_cast<const std::byte*>(data), bytes);
  return true;
}

void Memory::Unpin(const void* data) {
  TETRION_CHECK(ranges_.erase(static_cast<const std::byte*>(data)) == 1, "it was pinned here");
}

bool Memory::IsWithinRange(const void* data, std::size_t bytes) const {
  const auto* byte = static_cast<const std::byte*>(data);
  auto after = ranges_.upper_bound(byte);
  if (after == ranges_.begin()) return false;
  --after;
  const auto offset = static_cast<std::size_t>(byte - after->first);
  return offset < after->second && bytes <= after->second - offset;
}

MemoryKind Memory::KindOf(const void* data) const {
  const auto found = Containing(data);
  if (found != live_.end()) return found->second.kind;
  return IsWithinRange(data, 1) ? MemoryKind::kPinned : MemoryKind::kPageable;
}

bool Memory::IsWithin(const void* data, std::size_t bytes, MemoryKind kind) const {
  const auto found = Containing(data);
  if (found == live_.end()) return kind == MemoryKind::kPinned && IsWithinRange(data, bytes);
  if (found->second.kind != kind) return false;
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
    if (!IsIntact(FrontFill(data, buffer))) {
      return "writes in front of a buffer of " + Bytes(buffer.bytes);
    }
    if (!IsIntact(EndFill(data, buffer))) {
      return "writes past the end of a buffer of " + Bytes(buffer.bytes);
    }
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
