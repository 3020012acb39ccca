#include "lib/nn/dreamer/dreamer_model.h"

#include "lib/core/check.h"
#include "lib/nn/dreamer/primitives.h"

namespace tetrion {

using torch::Tensor;

DreamerModel::DreamerModel(const DreamerShape& shape, std::span<float> parameters,
                           std::span<float> gradients, torch::Device device)
    : shape_(shape),
      tensors_(DreamerLayout(shape), 0, parameters, gradients, device),
      encoder_(shape, tensors_),
      core_(shape, tensors_),
      posterior_(shape, tensors_),
      actor_(tensors_, "actor", kMlpLayers),
      prior_(tensors_, "prior", kPriorLayers),
      decoder_(shape, tensors_),
      reward_(tensors_, "reward", kHeadLayers),
      continue_(tensors_, "continue", kHeadLayers),
      value_(tensors_, "value", kMlpLayers) {
  TETRION_CHECK(parameters.size() == FloatsOf(DreamerLayout(shape)) ||
                    parameters.size() == ActingFloats(shape),
                "the whole buffer, or what acting needs");
}

Tensor DreamerModel::StochLogProbs(const Tensor& logits) const {
  std::vector<std::int64_t> shape = logits.sizes().vec();
  shape.back() = shape_.size.stoch;
  shape.push_back(shape_.size.classes);
  return UnimixLogProbs(logits.reshape(shape), shape_.unimix);
}

Tensor DreamerModel::PriorLogProbs(const Tensor& deter) const {
  return StochLogProbs(prior_(deter));
}

Tensor DreamerModel::Feature(const Tensor& deter, const Tensor& stoch) const {
  return torch::cat({deter, stoch.flatten(-2)}, -1);
}

Tensor DreamerModel::ContinueLogit(const Tensor& feature) const {
  return continue_(feature).squeeze(-1);
}

Tensor DreamerModel::ActorLogProbs(const Tensor& feature) const {
  return UnimixLogProbs(actor_(feature), shape_.actor_unimix);
}

Tensor DreamerModel::ReconstructionLoss(const Tensor& prediction, const Tensor& view) const {
  switch (shape_.input) {
    case DreamerInput::kVector:
      return torch::square(prediction - Symlog(view)).sum(-1);
    case DreamerInput::kPlanes:
      return torch::binary_cross_entropy_with_logits(prediction, view, {}, {}, at::Reduction::None)
          .sum(-1);
    case DreamerInput::kPixels:
      return torch::square(prediction - view).sum(-1);
  }
  TETRION_CHECK(false, "every kind of view has a loss");
}

}  // namespace tetrion
