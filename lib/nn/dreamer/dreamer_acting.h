#pragma once

#include <memory>
#include <span>
#include <vector>

#include "lib/nn/dreamer/dreamer_shape.h"

namespace tetrion {

// The part of DreamerV3's model that acting needs, on plain memory: one step of n lanes is
//
//   Observe: deter, stoch, action, view -> deter', log-probabilities of stoch'
//   (the caller draws stoch')
//   ActorLogits: deter', stoch' -> logits
//
// No header of the tensor library is needed to use it. Thread role: one thread at a time; the
// tensor library computes on that thread alone.
class DreamerActing {
 public:
  explicit DreamerActing(const DreamerShape& shape);
  ~DreamerActing();

  const DreamerShape& shape() const { return shape_; }
  // [ActingFloats], all 0 at first.
  std::span<float> parameters() { return parameters_; }

  // What the step before has left, and what is seen now. An episode begins from zeros.
  struct Before {
    const float* deter = nullptr;   // [n, D]
    const float* stoch = nullptr;   // [n, S, C] one-hot
    const float* action = nullptr;  // [n, A] one-hot
    const float* view = nullptr;    // [n, F]
  };
  // Writes deter [n, D] and log_probs [n, S, C] of the posterior, mixed with the uniform ones.
  void Observe(int n, const Before& before, float* deter, float* log_probs) const;
  // Writes logits [n, A], not mixed yet.
  void ActorLogits(int n, const float* deter, const float* stoch, float* logits) const;

 private:
  struct Model;

  // Observe of few lanes.
  void ObserveSome(int n, const Before& before, float* deter, float* log_probs) const;

  const DreamerShape shape_;
  std::vector<float> parameters_;
  std::unique_ptr<const Model> model_;
};

}  // namespace tetrion
