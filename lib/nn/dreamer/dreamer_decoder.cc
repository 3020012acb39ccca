#include "lib/nn/dreamer/dreamer_decoder.h"

#include "lib/nn/dreamer/primitives.h"

namespace tetrion {

using torch::Tensor;

namespace {

// [N, H, W, C] -> [N, H, W, out].
Tensor Conv(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return torch::conv2d(x.permute({0, 3, 1, 2}), weight, bias, /*stride=*/1,
                       /*padding=*/kConvKernel / 2)
      .permute({0, 2, 3, 1});
}

}  // namespace

DreamerDecoder::DreamerDecoder(const DreamerShape& shape, const DreamerTensors& tensors)
    : shape_(shape) {
  if (shape.input != DreamerInput::kPixels) {
    numbers_ = DreamerHead(tensors, "decoder", kMlpLayers);
    return;
  }
  deter_weight_ = tensors.Find("decoder.deter.weight");
  deter_bias_ = tensors.Find("decoder.deter.bias");
  stoch_ = DreamerDense(tensors, "decoder.stoch");
  map_ = DreamerDense(tensors, "decoder.map");
  for (std::int64_t stage = kConvStages - 2; stage >= 0; --stage) {
    stages_.emplace_back(tensors, "decoder." + std::to_string(stage));
  }
  out_weight_ = tensors.Find("decoder.out.weight");
  out_bias_ = tensors.Find("decoder.out.bias");
}

Tensor DreamerDecoder::operator()(const Tensor& feature) const {
  if (shape_.input != DreamerInput::kPixels) return numbers_(feature);
  std::vector<std::int64_t> shape = feature.sizes().vec();
  shape.back() = kPictureRows * kPictureColumns;
  return Pictures(feature.reshape({-1, feature.size(-1)})).reshape(shape);
}

Tensor DreamerDecoder::Map(const Tensor& feature) const {
  const std::int64_t blocks = shape_.size.blocks;
  const std::int64_t channels = map_.scale.size(0);
  const Tensor deter = feature.narrow(-1, 0, shape_.size.deter);
  const Tensor stoch = feature.narrow(-1, shape_.size.deter, shape_.stoch_floats());
  // A block of deter makes some channels of every cell.
  const Tensor of_deter = BlockLinear(deter, deter_weight_, deter_bias_)
                              .reshape({-1, blocks, kLastMap, kLastMap, channels / blocks})
                              .permute({0, 2, 3, 1, 4})
                              .reshape({-1, kLastMap, kLastMap, channels});
  const Tensor of_stoch = torch::linear(stoch_(stoch), map_.weight, map_.bias)
                              .reshape({-1, kLastMap, kLastMap, channels});
  return map_.Activate(of_deter + of_stoch);
}

Tensor DreamerDecoder::Pictures(const Tensor& feature) const {
  constexpr std::int64_t kEvenRows = 9;  // of the encoder's last map but one
  Tensor x = Map(feature);
  for (const DreamerDense& stage : stages_) {
    x = UpsampleTwice(x);
    if (x.size(1) == 2 * kLastMap) x = x.narrow(1, 0, kEvenRows);
    x = stage.Activate(Conv(x, stage.weight, stage.bias));
  }
  return torch::sigmoid(Conv(UpsampleTwice(x), out_weight_, out_bias_)).flatten(1);
}

Tensor UpsampleTwice(const Tensor& x) {
  const std::int64_t n = x.size(0), h = x.size(1), w = x.size(2), c = x.size(3);
  return x.reshape({n, h, 1, w, 1, c}).expand({n, h, 2, w, 2, c}).reshape({n, 2 * h, 2 * w, c});
}

}  // namespace tetrion
