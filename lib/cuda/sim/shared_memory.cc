#include "lib/cuda/sim/shared_memory.h"

#include <algorithm>
#include <cstring>

#include "lib/core/align.h"
#include "lib/core/check.h"

namespace tetrion::cuda::sim {
namespace {

constexpr std::size_t kArrayAlignBytes = 16;
constexpr int kFresh = 0xFF;

}  // namespace

SharedMemory::SharedMemory() : bytes_(new std::byte[kMostBytes]), written_(kMostBytes, false) {
  used_bytes_ = kMostBytes;
}

void SharedMemory::Begin(std::size_t dynamic_bytes) {
  TETRION_CHECK(dynamic_bytes <= kMostBytes, "a launch was checked");
  // What the block before it used; the rest is fresh.
  std::memset(bytes_.get(), kFresh, used_bytes_);
  std::fill_n(written_.begin(), used_bytes_, false);
  statics_.clear();
  dynamic_bytes_ = dynamic_bytes;
  static_bytes_ = 0;
  used_bytes_ = AlignUp(dynamic_bytes, kArrayAlignBytes);
}

void* SharedMemory::Static(const void* tag, std::size_t bytes) {
  const auto [place, fresh] = statics_.try_emplace(tag, used_bytes_);
  if (fresh) {
    if (bytes > kMostBytes - used_bytes_ || bytes > kMostStaticBytes - static_bytes_)
      return nullptr;
    const std::size_t rounded = AlignUp(bytes, kArrayAlignBytes);
    used_bytes_ += rounded;
    static_bytes_ += rounded;
  }
  return bytes_.get() + place->second;
}

std::size_t SharedMemory::OffsetOf(const void* at) const {
  return static_cast<std::size_t>(static_cast<const std::byte*>(at) - bytes_.get());
}

bool SharedMemory::Written(const void* at, std::size_t bytes) const {
  const auto first = written_.begin() + static_cast<std::ptrdiff_t>(OffsetOf(at));
  return std::find(first, first + static_cast<std::ptrdiff_t>(bytes), false) ==
         first + static_cast<std::ptrdiff_t>(bytes);
}

void SharedMemory::NoteWrite(const void* at, std::size_t bytes) {
  std::fill_n(written_.begin() + static_cast<std::ptrdiff_t>(OffsetOf(at)), bytes, true);
}

}  // namespace tetrion::cuda::sim
