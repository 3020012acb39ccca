#pragma once

#include <cstdint>
#include <vector>

#include "lib/frame/specs.h"

namespace tetrion {

// The distinct windows of a set of boards. A window is a column with its left and right neighbour;
// a wall counts as a column of cells. Placements of one state differ in few columns, so that about
// one window in two is another board's, too.
//
// Thread role: one thread at a time.
class BoardWindows {
 public:
  static constexpr int kColumns = 3;
  static constexpr int kBits = kColumns * kBoardRows;  // of a window
  static_assert(kBits <= 64);

  // Allocates for `max_boards` boards of `columns` columns.
  void Allocate(int max_boards, int columns);

  // Replaces what is held. Boards are `stride` floats apart; each begins with its columns as
  // ObsSpec::board_columns says. Other numbers are windows of no meaning.
  void Find(const float* boards, std::int64_t stride, int count);

  int boards() const { return boards_; }
  int columns() const { return columns_; }
  int count() const { return count_; }  // distinct windows
  // [count]: bit r of the left neighbour, bit kBoardRows + r of the column, and so on.
  const std::uint64_t* bits() const { return bits_.data(); }
  // [columns]: the windows of a board.
  const std::int32_t* OfBoard(int board) const {
    return of_board_.data() + std::int64_t{board} * columns_;
  }

 private:
  struct Slot {
    std::uint64_t bits = 0;
    std::uint32_t round = 0;  // of the Find that filled it
    std::int32_t window = 0;
  };

  std::int32_t WindowOf(std::uint64_t bits);

  int columns_ = 0, boards_ = 0, count_ = 0;
  std::vector<std::uint64_t> bits_;
  std::vector<std::int32_t> of_board_;  // [boards, columns]
  std::vector<Slot> table_;             // open addressing; a power of two
  std::uint32_t round_ = 0;
};

}  // namespace tetrion
