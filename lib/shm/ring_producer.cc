#include "lib/shm/ring_producer.h"

#include "lib/core/clock.h"

namespace tetrion {

RingProducer::RingProducer(std::byte* memory, const RingSpec& spec, std::uint64_t first,
                           Layout layout)
    : block_(reinterpret_cast<RingBlock*>(memory)),
      records_(memory + kRingRecordsOffset),
      capacity_(spec.capacity),
      stride_bytes_(RingStrideBytes(spec)),
      space_bell_(&block_->space),
      completed_(first),
      published_(first),
      cached_tail_(first) {
  static_cast<void>(RingMemoryBytes(spec));  // CHECKs the spec
  TETRION_CHECK(reinterpret_cast<std::uintptr_t>(memory) % kCacheLinePairBytes == 0,
                "ring memory must be 128-byte aligned");
  if (layout == Layout::kPresent) return;
  block_->capacity.store(spec.capacity, std::memory_order_relaxed);
  block_->record_bytes.store(spec.record_bytes, std::memory_order_relaxed);
  block_->spec_hash.store(spec.spec_hash, std::memory_order_relaxed);
  block_->tail.store(first, std::memory_order_relaxed);
  block_->head.store(first, std::memory_order_release);
}

RingProducer RingProducer::Over(std::byte* memory, const RingSpec& spec, std::uint64_t first) {
  return RingProducer(memory, spec, first, Layout::kFresh);
}

std::optional<RingProducer> RingProducer::Adopt(std::byte* memory, const RingSpec& spec) {
  const auto* block = reinterpret_cast<const RingBlock*>(memory);
  const std::uint64_t head = block->head.load(std::memory_order_acquire);
  const std::uint64_t tail = block->tail.load(std::memory_order_acquire);  // pairs with Release
  const bool same = block->capacity.load(std::memory_order_relaxed) == spec.capacity &&
                    block->record_bytes.load(std::memory_order_relaxed) == spec.record_bytes &&
                    block->spec_hash.load(std::memory_order_relaxed) == spec.spec_hash;
  if (!same || head - tail > spec.capacity) return std::nullopt;
  RingProducer producer(memory, spec, head, Layout::kPresent);
  producer.cached_tail_ = tail;
  return producer;
}

RingProducer RingProducer::Create(Region&& region, const RingSpec& spec, std::uint64_t first) {
  TETRION_CHECK(region.is_owner() && !region.sealed(), "a ring needs a region fresh from Create");
  TETRION_CHECK(region.size() >= RingRegionBytes(spec), "the region is too small for the ring");
  TETRION_CHECK(region.header().spec_hash == spec.spec_hash, "region and ring differ in layout");
  RingProducer producer(region.payload(), spec, first, Layout::kFresh);
  region.Seal();
  producer.region_.emplace(std::move(region));
  return producer;
}

std::uint64_t RingProducer::FreeRecords() {
  if (corrupt_) return 0;
  const std::uint64_t tail = block_->tail.load(std::memory_order_acquire);  // pairs with Release
  // The consumer releases only what was published, and never takes it back.
  if (tail - cached_tail_ > published_ - cached_tail_) {
    corrupt_ = true;
    cached_tail_ = completed_ - capacity_;  // full, for good
    return 0;
  }
  cached_tail_ = tail;
  return capacity_ - (completed_ - tail);
}

SpaceResult RingProducer::WaitForSpace(std::int64_t timeout_ns) {
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  while (true) {
    if (FreeRecords() > 0) return SpaceResult::kSpace;
    if (deadline.Passed()) return SpaceResult::kTimeout;
    const std::uint32_t armed = space_bell_.Arm();
    if (FreeRecords() > 0) {
      space_bell_.Disarm(armed);
      return SpaceResult::kSpace;
    }
    static_cast<void>(space_bell_.Wait(armed, deadline.LeftNs()));  // either way: look again
  }
}

void RingProducer::Close() {
  if (closed_) return;
  Publish();
  closed_ = true;
  block_->closed.store(1, std::memory_order_release);  // pairs with Peek
  if (bell_.valid()) bell_.Ring();
}

}  // namespace tetrion
