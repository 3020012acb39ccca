#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/nn/torch/torch_pch.h"
#include "tests/support/golden.h"

namespace tetrion::testing {

// Of the case "picture".
inline DreamerShape PictureShape() {
  DreamerShape shape;
  shape.size = {.deter = 16, .units = 4, .stoch = 4, .classes = 4, .depth = 2, .blocks = 4};
  shape.input = DreamerInput::kPixels;
  shape.floats = kPictureRows * kPictureColumns;
  shape.actions = 3;
  return shape;
}

// A tensor of the golden file, a copy.
inline torch::Tensor GoldenTensor(const std::string& name) {
  const TrainerState::Tensor& golden = Golden(name);
  return torch::tensor(golden.data).reshape(golden.shape);
}

// As GoldenTensor, with a gradient to be asked for.
inline torch::Tensor GoldenLeaf(const std::string& name) {
  return GoldenTensor(name).requires_grad_(true);
}

// Compares with tensor `name` of the golden file; the tolerance is relative to its greatest number
// where that is above 1.
inline void ExpectGolden(const torch::Tensor& actual, const std::string& name, double tolerance) {
  const torch::Tensor expected = GoldenTensor(name);
  ASSERT_EQ(actual.numel(), expected.numel()) << name;
  const double scale = std::max(1.0, expected.abs().max().item<double>());
  const double worst = (actual.detach().reshape_as(expected) - expected).abs().max().item<double>();
  EXPECT_LE(worst, tolerance * scale) << name;
}

// The flat buffer of a shape with the parameters `prefix` + name of the golden file, zero where it
// has none, and a buffer for gradients.
struct GoldenParameters {
  GoldenParameters(const DreamerShape& shape, const std::string& prefix)
      : layout(DreamerLayout(shape)), values(FloatsOf(layout)), gradients(values.size()) {
    for (const ParameterInfo& info : layout) {
      if (!HasPiece(info.name, prefix)) continue;
      const TrainerState::Tensor& golden = Golden(prefix + info.name);
      EXPECT_EQ(golden.shape, info.shape) << info.name;
      std::copy(golden.data.begin(), golden.data.end(),
                values.begin() + static_cast<std::ptrdiff_t>(info.offset));
    }
  }

  // Compares the gradients of the pieces of the modules that the case is about.
  void ExpectGradients(const std::string& prefix, const std::string& slopes, double tolerance) {
    for (const ParameterInfo& info : layout) {
      if (!HasPiece(info.name, prefix)) continue;
      ExpectGolden(torch::from_blob(gradients.data() + info.offset, info.shape), slopes + info.name,
                   tolerance);
    }
  }

  ParameterLayout layout;
  std::vector<float> values, gradients;

 private:
  // The case "observe" is about core and posterior, "picture" about encoder and decoder.
  static bool HasPiece(const std::string& name, const std::string& prefix) {
    const bool recurrent = name.starts_with("core.") || name.starts_with("posterior.");
    const bool picture = name.starts_with("encoder.") || name.starts_with("decoder.");
    return prefix.starts_with("observe") ? recurrent : picture;
  }
};

}  // namespace tetrion::testing
