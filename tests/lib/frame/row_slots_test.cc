#include "lib/frame/row_slots.h"

#include <gtest/gtest.h>

#include <vector>

namespace tetrion {
namespace {

TEST(RowSlotsTest, RowStandsInItsSlotLapAfterLap) {
  constexpr std::uint64_t kCapacity = 4;
  constexpr std::uint32_t kLanes = 3, kRecordBytes = 5;
  std::vector<RowHeader> header(kCapacity);
  std::vector<std::byte> record(kCapacity * kLanes * kRecordBytes);
  std::vector<std::int32_t> action(kCapacity * kLanes);
  std::vector<std::uint64_t> mask(kCapacity * kLanes);
  RowSlots slots;
  slots.header = header.data();
  slots.record = record.data();
  slots.action = action.data();
  slots.mask = mask.data();
  slots.capacity_rows = kCapacity;
  slots.lanes = kLanes;
  slots.record_bytes = kRecordBytes;
  for (const std::uint64_t row : {2ULL, 6ULL, 4'000'000'002ULL}) {
    const RowView view = slots.At(row);
    EXPECT_EQ(view.header, header.data() + 2);
    EXPECT_EQ(view.record, record.data() + 2 * kLanes * kRecordBytes);
    EXPECT_EQ(view.action, action.data() + 2 * kLanes);
    EXPECT_EQ(view.mask, mask.data() + 2 * kLanes);
  }
  slots.mask = nullptr;
  EXPECT_EQ(slots.At(1).mask, nullptr) << "no masks in any slot";
}

}  // namespace
}  // namespace tetrion
