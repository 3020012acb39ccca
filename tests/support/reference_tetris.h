#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <functional>
#include <vector>

// Tetris written the slow and obvious way from the description of the game: a 24x18 array of cell
// values, piece matrices, loops over cells. Oracle of the differential test and rival of the
// benchmark; it shares no line with lib/envs/tetris/tetris_rules.h.

namespace tetrion::testing {

struct ReferenceStep {
  int reward = 0;
  int lines = 0;
  bool terminated = false;
  bool illegal = false;
};

class ReferenceTetris {
 public:
  static constexpr int kHeight = 24, kWidth = 18, kPadding = 4, kColumns = 10;
  using Matrix = std::vector<std::vector<int>>;
  using Board = std::array<std::array<int, kWidth>, kHeight>;

  // `next` gives the ids of the pieces, 0..6.
  ReferenceTetris(int queue_size, std::function<int()> next) : next_(std::move(next)) {
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) board_[At(y)][At(x)] = InField(y, x) ? 0 : 1;
    }
    for (int i = 0; i < queue_size; ++i) queue_.push_back(next_());
    Spawn();
  }

  ReferenceStep Step(int action) {
    switch (action) {
      case 0:
        MoveIfFree(-1, 0);
        break;
      case 1:
        MoveIfFree(1, 0);
        break;
      case 2:
        MoveIfFree(0, 1);
        break;
      case 3:
        TurnIfFree(TurnedLeft(matrix_));
        break;
      case 4:
        TurnIfFree(TurnedLeft(TurnedLeft(TurnedLeft(matrix_))));
        break;
      case 5:
        return Commit();
      case 6:
        Swap();
        break;
      default:
        break;
    }
    if (MoveIfFree(0, 1)) return {};
    return Commit();
  }

  ReferenceStep Place(int action, bool illegal_is_noop) {
    if (!Legal(action)) {
      ReferenceStep step = illegal_is_noop ? Step(7) : ReferenceStep{0, 0, true, true};
      step.illegal = true;
      return step;
    }
    for (int i = 0; i < action % 4; ++i) matrix_ = TurnedLeft(matrix_);
    x_ = action / 4 + kPadding - Size() / 2;
    return Commit();
  }

  // Whether the dropped piece stays clear of bedrock.
  bool Legal(int action) const {
    Matrix matrix = matrix_;
    for (int i = 0; i < action % 4; ++i) matrix = TurnedLeft(matrix);
    const int x = action / 4 + kPadding - Size() / 2;
    int y = 0;
    while (!Collides(matrix, y + 1, x)) ++y;
    for (int i = 0; i < Size(); ++i) {
      for (int j = 0; j < Size(); ++j) {
        if (matrix[At(i)][At(j)] != 0 && board_[At(y + i)][At(x + j)] == 1) return false;
      }
    }
    return true;
  }

  // Board after placement `action` dropped from the top; false when the piece does not fit. Row 0
  // is blanked, which is how the reference package's features see it.
  bool After(int action, Board* board, int* lines) const {
    ReferenceTetris copy = *this;
    for (int i = 0; i < action % 4; ++i) copy.matrix_ = TurnedLeft(copy.matrix_);
    copy.x_ = action / 4 + kPadding - Size() / 2;
    copy.y_ = 0;
    while (!Collides(copy.matrix_, copy.y_ + 1, copy.x_)) ++copy.y_;
    if (Collides(copy.matrix_, copy.y_, copy.x_)) return false;
    copy.Lock();
    *lines = copy.ClearFullRows();
    *board = copy.board_;
    for (int x = kPadding; x < kPadding + kColumns; ++x) (*board)[0][At(x)] = 0;
    return true;
  }

  const Board& board() const { return board_; }
  const Matrix& matrix() const { return matrix_; }
  const Matrix& held() const { return held_; }  // empty: nothing held
  int held_id() const { return held_id_; }
  const std::deque<int>& queue() const { return queue_; }
  int id() const { return id_; }
  int x() const { return x_; }
  int y() const { return y_; }
  bool swapped() const { return swapped_; }

  static Matrix PieceMatrix(int id) {
    static const std::array<Matrix, 7> kMatrices = {
        Matrix{{0, 0, 0, 0}, {1, 1, 1, 1}, {0, 0, 0, 0}, {0, 0, 0, 0}},
        Matrix{{1, 1}, {1, 1}},
        Matrix{{0, 1, 0}, {1, 1, 1}, {0, 0, 0}},
        Matrix{{0, 1, 1}, {1, 1, 0}, {0, 0, 0}},
        Matrix{{1, 1, 0}, {0, 1, 1}, {0, 0, 0}},
        Matrix{{1, 0, 0}, {1, 1, 1}, {0, 0, 0}},
        Matrix{{0, 0, 1}, {1, 1, 1}, {0, 0, 0}}};
    return kMatrices[At(id)];
  }

  // numpy's rot90(k=1).
  static Matrix TurnedLeft(const Matrix& in) {
    const int n = static_cast<int>(in.size());
    Matrix out = in;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) out[At(i)][At(j)] = in[At(j)][At(n - 1 - i)];
    }
    return out;
  }

 private:
  static std::size_t At(int i) { return static_cast<std::size_t>(i); }
  static bool InField(int y, int x) { return y < 20 && x >= kPadding && x < kPadding + kColumns; }
  int Size() const { return static_cast<int>(matrix_.size()); }

  bool Collides(const Matrix& matrix, int y, int x) const {
    const int n = static_cast<int>(matrix.size());
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        if (matrix[At(i)][At(j)] != 0 && board_[At(y + i)][At(x + j)] != 0) return true;
      }
    }
    return false;
  }

  bool MoveIfFree(int dx, int dy) {
    if (Collides(matrix_, y_ + dy, x_ + dx)) return false;
    x_ += dx;
    y_ += dy;
    return true;
  }

  void TurnIfFree(const Matrix& turned) {
    if (!Collides(turned, y_, x_)) matrix_ = turned;
  }

  void ToSpawnPosition() {
    y_ = 0;
    x_ = 9 - Size() / 2;
  }

  void Spawn() {
    id_ = queue_.front();
    queue_.pop_front();
    queue_.push_back(next_());
    matrix_ = PieceMatrix(id_);
    ToSpawnPosition();
  }

  void Swap() {
    if (swapped_) return;
    swapped_ = true;
    const Matrix held = held_;
    const int held_id = held_id_;
    held_ = matrix_;
    held_id_ = id_;
    if (held.empty()) {
      Spawn();
      return;
    }
    matrix_ = held;
    id_ = held_id;
    ToSpawnPosition();
  }

  void Lock() {
    for (int i = 0; i < Size(); ++i) {
      for (int j = 0; j < Size(); ++j) {
        if (matrix_[At(i)][At(j)] != 0) board_[At(y_ + i)][At(x_ + j)] = id_ + 2;
      }
    }
  }

  int ClearFullRows() {
    int lines = 0;
    for (int y = 0; y < 20; ++y) {
      const auto& row = board_[At(y)];
      if (std::count(row.begin() + kPadding, row.begin() + kPadding + kColumns, 0) > 0) continue;
      ++lines;
      for (int above = y; above > 0; --above) board_[At(above)] = board_[At(above - 1)];
      std::fill(board_[0].begin() + kPadding, board_[0].begin() + kPadding + kColumns, 0);
    }
    return lines;
  }

  ReferenceStep Commit() {
    if (Collides(matrix_, y_, x_)) return {0, 0, true, false};
    while (MoveIfFree(0, 1)) {
    }
    Lock();
    ReferenceStep step;
    step.lines = ClearFullRows();
    Spawn();
    swapped_ = false;
    step.terminated = Collides(matrix_, y_, x_);
    step.reward = step.terminated ? 0 : step.lines * step.lines * 10 + 1;
    return step;
  }

  std::function<int()> next_;
  Board board_;
  std::deque<int> queue_;
  Matrix matrix_, held_;
  int id_ = 0, held_id_ = 0, x_ = 0, y_ = 0;
  bool swapped_ = false;
};

}  // namespace tetrion::testing
