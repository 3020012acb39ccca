#include "lib/nn/dreamer/dreamer_shape.h"

#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lib/core/error.h"

namespace tetrion {
namespace {

DreamerShape VectorShape(const std::string& size, std::int64_t floats, std::int64_t actions) {
  DreamerShape shape;
  shape.size = DreamerSizeOf(size);
  shape.floats = floats;
  shape.actions = actions;
  return shape;
}

DreamerShape PixelShape(const std::string& size, std::int64_t actions) {
  DreamerShape shape = VectorShape(size, kPictureRows * kPictureColumns, actions);
  shape.input = DreamerInput::kPixels;
  return shape;
}

double Millions(const DreamerShape& shape) {
  return static_cast<double>(FloatsOf(DreamerLayout(shape))) / 1e6;
}

TEST(DreamerShape, HasAsManyParametersAsTheReferenceModule) {
  EXPECT_EQ(FloatsOf(DreamerLayout(VectorShape("nano", 4, 2))), 357573U);
  EXPECT_EQ(FloatsOf(DreamerLayout(PixelShape("nano", 3))), 446195U);
}

// Millions of parameters for 72x80 pictures and 7 actions, and those that acting needs.
TEST(DreamerShape, SizesAreWhatTheirNamesSay) {
  struct Expected {
    const char* name;
    double all, acting;
  };
  constexpr Expected kSizes[] = {
      {"1m", 0.72, 0.40},   {"12m", 11.08, 6.41},   {"25m", 24.8, 14.4},   {"50m", 44.0, 25.6},
      {"100m", 98.8, 57.6}, {"200m", 175.4, 102.4}, {"400m", 394.1, 230.3}};
  for (const Expected& expected : kSizes) {
    const DreamerShape shape = PixelShape(expected.name, 7);
    EXPECT_NEAR(Millions(shape), expected.all, expected.all * 0.005) << expected.name;
    EXPECT_NEAR(static_cast<double>(ActingFloats(shape)) / 1e6, expected.acting,
                expected.acting * 0.0125)
        << expected.name;
  }
}

TEST(DreamerShape, AnUnknownSizeNamesTheKnownOnes) {
  try {
    DreamerSizeOf("huge");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr("'huge'"),
                                               ::testing::HasSubstr("nano, 1m, 12m")));
  }
}

TEST(DreamerShape, ModulesLieOneBehindTheOtherWithTheActingOnesFirst) {
  for (const DreamerShape& shape : {VectorShape("1m", 4, 2), PixelShape("nano", 7)}) {
    const ParameterLayout layout = DreamerLayout(shape);
    std::size_t offset = 0;
    for (const std::string& module : DreamerModules()) {
      const DreamerSlice slice = DreamerModule(layout, module);
      EXPECT_EQ(slice.offset, offset) << module;
      offset += slice.size;
      if (module == "actor") {
        EXPECT_EQ(offset, ActingFloats(shape));
      }
    }
    EXPECT_EQ(offset, FloatsOf(layout));
  }
}

TEST(DreamerShape, LayerNormAddsAShiftToEveryScale) {
  DreamerShape shape = PixelShape("nano", 3);
  std::size_t scales = 0;
  for (const ParameterInfo& info : DreamerLayout(shape)) {
    if (info.name.ends_with(".scale")) scales += info.size;
  }
  shape.layer_norm = true;
  EXPECT_EQ(FloatsOf(DreamerLayout(shape)), 446195U + scales);
}

TEST(DreamerShape, TheViewDecidesHowItIsRead) {
  EnvSpec env;
  env.action.count = 2;
  env.obs.view = "vector";
  env.obs.view_floats = 4;
  EXPECT_EQ(DreamerShapeOf(env, "nano").input, DreamerInput::kVector);
  EXPECT_EQ(DreamerShapeOf(env, "nano").floats, 4);
  EXPECT_EQ(DreamerShapeOf(env, "nano").actions, 2);
  env.obs.view = "planes";
  EXPECT_EQ(DreamerShapeOf(env, "nano").input, DreamerInput::kPlanes);
  env.obs.view = "pixels";
  env.obs.view_floats = 72 * 80;
  EXPECT_EQ(DreamerShapeOf(env, "nano").input, DreamerInput::kPixels);
}

class InitialTest : public ::testing::Test {
 protected:
  InitialTest() { FillDreamerInitial(shape_, 7, values_); }

  std::vector<float> Piece(const std::string& name) const {
    const ParameterInfo& info = ParameterOf(layout_, name);
    const auto begin = values_.begin() + static_cast<std::ptrdiff_t>(info.offset);
    return {begin, begin + static_cast<std::ptrdiff_t>(info.size)};
  }

  double Deviation(const std::string& name) const {
    double squares = 0;
    const std::vector<float> piece = Piece(name);
    for (const float value : piece) squares += static_cast<double>(value) * value;
    return std::sqrt(squares / static_cast<double>(piece.size()));
  }

  DreamerShape shape_ = PixelShape("nano", 3);
  ParameterLayout layout_ = DreamerLayout(shape_);
  std::vector<float> values_ = std::vector<float>(FloatsOf(layout_), -1.0F);
};

TEST_F(InitialTest, RewardAndValueStartAtZeroAndTheActorNearIt) {
  EXPECT_THAT(Piece("reward.out.weight"), ::testing::Each(0.0F));
  EXPECT_THAT(Piece("value.out.weight"), ::testing::Each(0.0F));
  EXPECT_NEAR(Deviation("actor.out.weight"), 0.01 / 8.0, 0.0002);
}

TEST_F(InitialTest, BiasesAreZeroAndScalesOne) {
  for (const ParameterInfo& info : layout_) {
    if (info.name.ends_with(".bias")) {
      EXPECT_THAT(Piece(info.name), ::testing::Each(0.0F)) << info.name;
    }
    if (info.name.ends_with(".scale")) {
      EXPECT_THAT(Piece(info.name), ::testing::Each(1.0F)) << info.name;
    }
  }
}

TEST_F(InitialTest, WeightsHaveTheDeviationOfTheirInputs) {
  EXPECT_NEAR(Deviation("core.deter.weight"), 1.0 / 16.0, 0.001);  // 256 inputs
  // All inputs of a block-diagonal layer count, not those of a block.
  EXPECT_NEAR(Deviation("core.hidden.weight"), 1.0 / std::sqrt(1792.0), 0.0005);
  EXPECT_NEAR(Deviation("encoder.3.weight"), 1.0 / std::sqrt(400.0), 0.002);
  for (const float value : Piece("core.deter.weight")) {
    EXPECT_LE(std::abs(value), 2.0 * 1.1368 / 16.0 + 1e-6);
  }
}

TEST_F(InitialTest, IsAPureFunctionOfTheSeed) {
  std::vector<float> again(values_.size()), other(values_.size());
  FillDreamerInitial(shape_, 7, again);
  FillDreamerInitial(shape_, 8, other);
  EXPECT_EQ(again, values_);
  EXPECT_NE(other, values_);
}

TEST_F(InitialTest, OfThePartThatActsIsThatOfTheWhole) {
  std::vector<float> acting(ActingFloats(shape_), -1.0F);
  FillDreamerInitial(shape_, 7, acting);
  values_.resize(acting.size());
  EXPECT_EQ(acting, values_);
}

}  // namespace
}  // namespace tetrion
