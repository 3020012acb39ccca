#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lib/nn/dreamer/dreamer_shape.h"

namespace tetrion {

// Rows of one episode as it was played, from its first row on.
struct PlayedRows {
  int rows = 0;
  const float* view = nullptr;           // [rows, F]
  const std::int32_t* action = nullptr;  // [rows] taken at each row; the last one is not read
};

// What a world model says of each of them.
struct DreamtRows {
  std::vector<float> view;          // [rows, F] as the environment has them
  std::vector<float> loss;          // [rows] reconstruction loss
  std::vector<float> reward, cont;  // [rows] reward of arriving there; what the continue head says
};

// Shows what a world model knows: it follows the first rows of an episode with its posterior and
// imagines the others from the actions alone, and both are decoded. On plain memory; no header of
// the tensor library is needed to use it. Thread role: one thread at a time.
class DreamerDream {
 public:
  explicit DreamerDream(const DreamerShape& shape);
  ~DreamerDream();

  // [the whole of DreamerLayout], all 0 at first.
  std::span<float> parameters() { return parameters_; }

  // The first `context` rows are seen (1 at least). States are drawn as a policy with `seed` draws
  // those of token 0.
  DreamtRows Dream(const PlayedRows& played, int context, std::uint64_t seed) const;

 private:
  struct Model;

  const DreamerShape shape_;
  std::vector<float> parameters_;
  std::unique_ptr<const Model> model_;
};

}  // namespace tetrion
