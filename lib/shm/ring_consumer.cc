#include "lib/shm/ring_consumer.h"

#include <algorithm>
#include <utility>

#include "lib/core/error.h"

namespace tetrion {
namespace {

// As the producer laid the ring out.
RingSpec SpecIn(const std::byte* memory) {
  const auto* block = reinterpret_cast<const RingBlock*>(memory);
  return {.capacity = block->capacity.load(std::memory_order_relaxed),
          .record_bytes = block->record_bytes.load(std::memory_order_relaxed),
          .spec_hash = block->spec_hash.load(std::memory_order_relaxed)};
}

}  // namespace

RingConsumer::RingConsumer(std::byte* memory, const RingSpec& spec)
    : block_(reinterpret_cast<RingBlock*>(memory)),
      records_(memory + kRingRecordsOffset),
      capacity_(spec.capacity),
      record_bytes_(spec.record_bytes),
      stride_bytes_(RingStrideBytes(spec)),
      quarter_(std::max<std::uint64_t>(spec.capacity / 4, 1)),
      space_bell_(&block_->space),
      tail_(block_->tail.load(std::memory_order_acquire)),
      cached_head_(tail_) {}

RingConsumer RingConsumer::Over(std::byte* memory, const RingSpec& spec) {
  return RingConsumer(memory, spec);
}

RingConsumer RingConsumer::Attach(const std::string& path, std::uint64_t spec_hash,
                                  const AttachNeeds& needs, RegionKind kind) {
  AttachNeeds all = needs;
  all.spec_hash = spec_hash;
  all.min_bytes = std::max(needs.min_bytes, kRegionHeaderBytes + kRingRecordsOffset);
  Region region = Region::Attach(path, kind, all);
  const RingSpec spec = SpecIn(region.payload());
  const bool sane = IsPowerOfTwo(spec.capacity) && spec.capacity <= kMaxRingCapacity &&
                    spec.record_bytes > 0 && spec.record_bytes <= kMaxRingRecordBytes;
  if (!sane || RingRegionBytes(spec) > region.size() || spec.spec_hash != spec_hash) {
    throw Error(ExitCode::kConfig,
                path + " has a damaged ring header: capacity " + std::to_string(spec.capacity) +
                    " x " + std::to_string(spec.record_bytes) + " bytes in a file of " +
                    std::to_string(region.size()) + "; remove it and restart its owner");
  }
  RingConsumer consumer(region.payload(), spec);
  consumer.mapping_ = {region.data(), region.size()};
  consumer.region_.emplace(std::move(region));
  return consumer;
}

RingConsumer RingConsumer::Beside(RingProducer& producer) {
  Region* const region = producer.region();
  TETRION_CHECK(region != nullptr, "over plain memory use RingConsumer::Over");
  RingConsumer consumer(region->payload(), SpecIn(region->payload()));
  consumer.mapping_ = {region->data(), region->size()};
  return consumer;
}

RingStatus RingConsumer::Reload(std::uint64_t skip) {
  TETRION_CHECK(skip <= cached_head_ - tail_, "skipped records that were never seen");
  if (!corrupt_reason_.empty()) return RingStatus::kCorrupt;
  // The record's line is asked for before the cursor says that it is there, so that the two travel
  // between the cores at the same time, not one after the other.
  __builtin_prefetch(records_ + ((tail_ + skip) & (capacity_ - 1)) * stride_bytes_);
  // Closed first: whatever was published before Close is then in the head loaded after it.
  const bool closed = block_->closed.load(std::memory_order_acquire) != 0;  // pairs with Close
  const std::uint64_t head = block_->head.load(std::memory_order_acquire);  // pairs with Publish
  if (head - tail_ > capacity_ || head - tail_ < cached_head_ - tail_) return Quarantine(head);
  cached_head_ = head;
  if (head - tail_ > skip) return RingStatus::kOk;
  return closed ? RingStatus::kClosedAndEmpty : RingStatus::kEmpty;
}

RingStatus RingConsumer::Quarantine(std::uint64_t head) {
  const bool back = head - tail_ > capacity_ ? tail_ - head <= capacity_ : true;
  corrupt_reason_ = "the producer's cursor is impossible: head " + std::to_string(head) +
                    (back ? " went back" : " is more than the capacity ahead") + " (tail " +
                    std::to_string(tail_) + ", last head " + std::to_string(cached_head_) +
                    ", capacity " + std::to_string(capacity_) + ")";
  return RingStatus::kCorrupt;
}

}  // namespace tetrion
