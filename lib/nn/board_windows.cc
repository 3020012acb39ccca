#include "lib/nn/board_windows.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace tetrion {
namespace {

constexpr std::uint64_t kWall = (std::uint64_t{1} << kBoardRows) - 1;

// The cells of a column; a view's numbers are whole and inside the range.
std::uint64_t CellsOf(float column) {
  return column >= 0 && column <= static_cast<float>(kWall) ? static_cast<std::uint64_t>(column)
                                                            : 0;
}

}  // namespace

void BoardWindows::Allocate(int max_boards, int columns) {
  columns_ = columns;
  const auto most = static_cast<std::size_t>(max_boards) * static_cast<std::size_t>(columns);
  bits_.resize(most);
  of_board_.resize(most);
  table_.assign(std::bit_ceil(2 * most), {});
  round_ = 0;
}

std::int32_t BoardWindows::WindowOf(std::uint64_t bits) {
  const std::size_t last = table_.size() - 1;
  auto at = static_cast<std::size_t>(bits * 0x9E3779B97F4A7C15U >> 32) & last;
  while (table_[at].round == round_ && table_[at].bits != bits) at = (at + 1) & last;
  Slot& slot = table_[at];
  if (slot.round != round_) {
    slot = {bits, round_, count_};
    bits_[static_cast<std::size_t>(count_++)] = bits;
  }
  return slot.window;
}

void BoardWindows::Find(const float* boards, std::int64_t stride, int count) {
  boards_ = count;
  count_ = 0;
  if (++round_ == 0) {  // the stamps are used up: once in 4 G calls
    std::fill(table_.begin(), table_.end(), Slot{});
    round_ = 1;
  }
  std::int32_t* window = of_board_.data();
  for (int board = 0; board < count; ++board) {
    const float* column = boards + board * stride;
    std::uint64_t bits = kWall << kBoardRows | CellsOf(column[0]) << 2 * kBoardRows;
    for (int c = 0; c < columns_; ++c) {
      const std::uint64_t right = c + 1 < columns_ ? CellsOf(column[c + 1]) : kWall;
      bits = bits >> kBoardRows | right << 2 * kBoardRows;
      *window++ = WindowOf(bits);
    }
  }
}

}  // namespace tetrion
