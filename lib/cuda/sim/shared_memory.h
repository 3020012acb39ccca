#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace tetrion::cuda::sim {

// The shared memory of one block at a time, with a mark for every byte that was written.
class SharedMemory {
 public:
  // What a block may have on Hopper, when a launch asks for it.
  static constexpr std::size_t kMostBytes = 227 * 1024;
  // Of these in arrays of its own: nvcc compiles no kernel with more.
  static constexpr std::size_t kMostStaticBytes = 48 * 1024;

  SharedMemory();

  // For the next block: nothing is written, and every byte holds 0xFF.
  void Begin(std::size_t dynamic_bytes);

  void* dynamic() { return bytes_.get(); }
  std::size_t dynamic_bytes() const { return dynamic_bytes_; }
  // The array of that tag; null when the block has no memory left for it.
  void* Static(const void* tag, std::size_t bytes);

  bool Written(const void* at, std::size_t bytes) const;
  void NoteWrite(const void* at, std::size_t bytes);

 private:
  std::size_t OffsetOf(const void* at) const;

  const std::unique_ptr<std::byte[]> bytes_;
  std::vector<bool> written_;
  std::map<const void*, std::size_t> statics_;  // offset of each tag's array
  std::size_t dynamic_bytes_ = 0;
  std::size_t static_bytes_ = 0;
  std::size_t used_bytes_ = 0;
};

}  // namespace tetrion::cuda::sim
