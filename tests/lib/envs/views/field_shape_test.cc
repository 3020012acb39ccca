#include "lib/envs/views/field_shape.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"
#include "tests/support/envs_driver.h"

namespace tetrion {
namespace {

// An empty field, `rows` of it played on, whose lowest rows are those of `picture`, top first.
TetrisRecord FieldOf(const std::vector<std::string>& picture, int rows = kTetrisRows) {
  PhiloxPieces pieces = PhiloxPieces::Of(1, 1, false);
  TetrisRecord field;
  TetrisReset(field, {1, rows}, pieces);
  for (std::size_t i = 0; i < picture.size(); ++i) {
    std::uint16_t& row = field.row[kTetrisRows - picture.size() + i];
    for (int c = 0; c < kTetrisColumns; ++c) {
      if (picture[i][static_cast<std::size_t>(c)] == '#') {
        row = static_cast<std::uint16_t>(row | 1U << (kTetrisFieldShift + c));
      }
    }
  }
  return field;
}

// Cell by cell from the definitions, walls and floor as cells outside the field.
class SlowField {
 public:
  explicit SlowField(const TetrisRecord& field) : field_(field) {}

  FieldShape Shape() const {
    FieldShape shape = {};
    for (int r = TopRow(field_); r < kTetrisRows; ++r) {
      bool has_hole = false;
      for (int c = 0; c <= kTetrisColumns; ++c) {
        shape.row_transitions += Full(r, c - 1) != Full(r, c);
        if (c == kTetrisColumns) break;
        shape.column_transitions += Full(r, c) != Full(r + 1, c);
        const int above = FullAbove(r, c);
        const bool is_hole = !Full(r, c) && above > 0;
        has_hole = has_hole || is_hole;
        shape.hole_depth += is_hole ? above : 0;
        for (int well = r; InWell(well, c); --well) ++shape.cumulative_wells;
      }
      shape.rows_with_holes += has_hole;
    }
    return shape;
  }

 private:
  bool Full(int r, int c) const {
    if (c < 0 || c >= kTetrisColumns || r >= kTetrisRows) return true;
    return r >= 0 && (FieldRow(field_, r) >> c & 1U) != 0;
  }
  bool InWell(int r, int c) const {
    return r >= TopRow(field_) && !Full(r, c) && Full(r, c - 1) && Full(r, c + 1);
  }
  int FullAbove(int r, int c) const {
    int full = 0;
    for (int above = 0; above < r; ++above) full += Full(above, c);
    return full;
  }

  const TetrisRecord& field_;
};

void ExpectSame(const FieldShape& ours, const FieldShape& theirs) {
  EXPECT_EQ(ours.row_transitions, theirs.row_transitions);
  EXPECT_EQ(ours.column_transitions, theirs.column_transitions);
  EXPECT_EQ(ours.cumulative_wells, theirs.cumulative_wells);
  EXPECT_EQ(ours.hole_depth, theirs.hole_depth);
  EXPECT_EQ(ours.rows_with_holes, theirs.rows_with_holes);
}

TEST(FieldShapeTest, AnEmptyFieldHasTransitionsAtItsWallsAndItsFloor) {
  ExpectSame(ShapeOf(FieldOf({})), {40, 10, 0, 0, 0});
  ExpectSame(ShapeOf(FieldOf({}, 10)), {20, 10, 0, 0, 0});
}

TEST(FieldShapeTest, CountsAWellAHoleAndWhatLiesAboveIt) {
  const TetrisRecord field = FieldOf({"#.#.......",  //
                                      "#.#.......",  //
                                      "###.......",  //
                                      "#.########"});
  const FieldShape shape = ShapeOf(field);
  // 16 empty rows with 2 each, two rows with 4, one with 2 and one with 2.
  EXPECT_EQ(shape.row_transitions, 32 + 4 + 4 + 2 + 2);
  // Column 0 and 2: top to empty; 1: empty to full, full to hole, hole to floor; the rest: one.
  EXPECT_EQ(shape.column_transitions, 1 + 3 + 1 + 7);
  EXPECT_EQ(shape.cumulative_wells, 1 + 2 + 1);  // two deep, and the hole
  EXPECT_EQ(shape.hole_depth, 1);
  EXPECT_EQ(shape.rows_with_holes, 1);
}

TEST(FieldShapeTest, AWellOfTwentyCellsBesideAWallCountsTwoHundredAndTen) {
  const std::vector<std::string> picture(kTetrisRows, ".#########");
  EXPECT_EQ(ShapeOf(FieldOf(picture)).cumulative_wells, 210);
}

TEST(FieldShapeTest, AnyFieldCountsAsCellByCell) {
  testing::Draws draws(31);
  for (int i = 0; i < 4000; ++i) {
    TetrisRecord field = {};
    for (auto& row : field.row) {
      // Three densities, so that there are towers, holes and wells of all sizes.
      std::uint32_t word = draws.Word();
      if (i % 3 == 1) word &= draws.Word();
      if (i % 3 == 2) word |= draws.Word();
      row = static_cast<std::uint16_t>(word);
    }
    field.flags = static_cast<std::uint8_t>(draws.Word());
    field = Sanitized(field);
    ExpectSame(ShapeOf(field), SlowField(field).Shape());
    ASSERT_FALSE(HasFailure()) << i;
  }
}

}  // namespace
}  // namespace tetrion
