#include "lib/rl/dreamer/tensor_returns.h"

#include <vector>

namespace tetrion {

using torch::Tensor;

Tensor ImaginedReturnsOf(const Tensor& reward, const Tensor& cont, const Tensor& value,
                         double lambda) {
  const std::int64_t horizon = reward.size(0);
  std::vector<Tensor> returns(static_cast<std::size_t>(horizon));
  Tensor later = value[horizon];  // behind the last row follows its value
  for (std::int64_t k = horizon; k-- > 0;) {
    later = reward[k] + cont[k + 1] * torch::lerp(value[k + 1], later, lambda);
    returns[static_cast<std::size_t>(k)] = later;
  }
  return torch::stack(returns);
}

Tensor ImaginedWeightsOf(const Tensor& cont) {
  const std::int64_t horizon = cont.size(0) - 1;
  std::vector<Tensor> weights = {cont[0]};
  for (std::int64_t k = 1; k < horizon; ++k) weights.push_back(weights.back() * cont[k]);
  return torch::stack(weights);
}

Tensor ReplayedReturnsOf(const Tensor& reward, const Tensor& not_last, const Tensor& alive,
                         const Tensor& boot, double discount, double lambda) {
  const std::int64_t steps = reward.size(0);
  const Tensor mix = not_last * lambda, cont = alive * discount;
  std::vector<Tensor> returns(static_cast<std::size_t>(steps - 1));
  Tensor later = boot[steps - 1];
  for (std::int64_t t = steps - 1; t-- > 0;) {
    later = reward[t + 1] + cont[t + 1] * torch::lerp(boot[t + 1], later, mix[t + 1]);
    returns[static_cast<std::size_t>(t)] = later;
  }
  return torch::stack(returns);
}

}  // namespace tetrion
