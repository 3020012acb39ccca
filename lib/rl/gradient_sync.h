#pragma once

#include <span>

namespace tetrion {

// Where the gradients of several learners become one. A trainer calls it on its own thread:
// AllCanStep in every update, when it knows whether it can step itself, and before each further
// pass over a batch, which its rows may be too old for; AllReduce in every update that all can
// take, after the backward pass and before the clip norm, so that all clip and step alike.
class GradientSync {
 public:
  virtual ~GradientSync() = default;
  // Whether every learner `can` step. Blocks until each has called it. Where one cannot (its
  // loss is not a finite number), none steps: nobody waits for a gradient that will not come.
  virtual bool AllCanStep(bool can) = 0;
  // `gradients`: the network's whole flat buffer, f32; replaced by its mean over all learners, the
  // same in each of them. Blocks until each has called it.
  virtual void AllReduce(std::span<float> gradients) = 0;
};

// One learner: its gradient is the mean.
class OneLearner final : public GradientSync {
 public:
  bool AllCanStep(bool can) override { return can; }
  void AllReduce(std::span<float>) override {}
};

}  // namespace tetrion
