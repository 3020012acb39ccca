#pragma once

#include <span>

namespace tetrion {

// Where the gradients of several learners become one. A trainer calls it on its own thread in every
// update that it takes, after the backward pass and before the clip norm, so that all learners clip
// and step alike.
class GradientSync {
 public:
  virtual ~GradientSync() = default;
  // `gradients`: the network's whole flat buffer, f32; replaced by its mean over all learners, the
  // same in each of them. Blocks until each has called it.
  virtual void AllReduce(std::span<float> gradients) = 0;
};

// One learner: its gradient is the mean.
class OneLearner final : public GradientSync {
 public:
  void AllReduce(std::span<float>) override {}
};

}  // namespace tetrion
