#pragma once

#include <cstdint>
#include <optional>

#include "lib/collect/lane_ports.h"
#include "lib/shm/ring_producer.h"

namespace tetrion {

// When a row in a ring has reached the learner.
enum class RowArrival {
  kWhenPublished,  // the learner reads this very ring
  kWhenReleased,   // a courier does, which releases what the learner has acknowledged
};

// A lane loop's rows into a shared-memory ring: claims records in place, publishes every
// `commit_stride` rows. Worker thread only.
class RingSink final : public RowSink {
 public:
  // CHECKs that the ring's records are rows of this layout.
  RingSink(const RowLayout& layout, RingProducer producer, int commit_stride,
           RowArrival arrival = RowArrival::kWhenPublished);

  const RowLayout& layout() const override { return layout_; }
  ClaimResult Claim(RowView& row, std::int64_t timeout_ns) override;
  void Complete() override;
  void Flush() override { producer_.Publish(); }
  std::uint64_t PublishedRows() const override {
    return arrival_ == RowArrival::kWhenPublished ? producer_.published() : producer_.Released();
  }

  // The consumer's bell, once the learner's region is there.
  void SetBell(Bell bell) { producer_.SetBell(bell); }
  // Publishes the rest and tells the learner that nothing follows.
  void Close() { producer_.Close(); }
  RingProducer& producer() { return producer_; }

 private:
  const RowLayout layout_;
  const std::uint64_t commit_stride_;
  const RowArrival arrival_;
  RingProducer producer_;
  std::optional<RingProducer::Loan> loan_;
};

}  // namespace tetrion
