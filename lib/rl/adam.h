#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tetrion {

// Adam (Kingma and Ba, 2015) over one flat buffer, with decoupled weight decay as AdamW has it
// (Loshchilov and Hutter, 2019).
struct AdamConfig {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-5;
  double weight_decay = 0;
};

class Adam {
 public:
  Adam(const AdamConfig& config, std::size_t size);

  // parameters -= learning_rate * (corrected mean / (sqrt(corrected square) + epsilon)
  //                                + weight_decay * parameters). A gradient whose square is beyond
  // a float's range leaves an infinite square and finite parameters; the step after it leaves
  // parameters that are not.
  void Step(std::span<float> parameters, std::span<const float> gradients, double learning_rate);

  std::span<float> mean() { return mean_; }
  std::span<const float> mean() const { return mean_; }
  std::span<float> square() { return square_; }
  std::span<const float> square() const { return square_; }
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }

 private:
  const AdamConfig config_;
  std::vector<float> mean_, square_;
  std::int64_t steps_ = 0;
};

// Euclidean norm in double; NaN or infinity when an element is.
double GlobalNorm(std::span<const float> values);

}  // namespace tetrion
