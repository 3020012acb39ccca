#include "lib/rl/dreamer/counted_mean.h"

namespace tetrion {

using torch::Tensor;

CountedMean::CountedMean(const Tensor& counts)
    : counts_(counts), count_(counts.sum().clamp_min(1)) {}

Tensor CountedMean::Of(const Tensor& values) const {
  const std::int64_t times = values.numel() / counts_.numel();
  const Tensor sum = (counts_ * values).sum();
  return sum / (times == 1 ? count_ : count_ * times);
}

}  // namespace tetrion
