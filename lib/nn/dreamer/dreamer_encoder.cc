#include "lib/nn/dreamer/dreamer_encoder.h"

#include <limits>

#include "lib/nn/dreamer/primitives.h"

namespace tetrion {

using torch::Tensor;

DreamerEncoder::DreamerEncoder(const DreamerShape& shape, const DreamerTensors& tensors)
    : input_(shape.input),
      layers_(tensors, "encoder", shape.input == DreamerInput::kPixels ? kConvStages : kMlpLayers) {
}

Tensor DreamerEncoder::operator()(const Tensor& view) const {
  switch (input_) {
    case DreamerInput::kVector:
      return layers_(Symlog(view));
    case DreamerInput::kPlanes:
      return layers_(view);
    case DreamerInput::kPixels:
      break;
  }
  std::vector<std::int64_t> shape = view.sizes().vec();
  shape.back() = -1;
  return Pictures(view.reshape({-1, view.size(-1)})).reshape(shape);
}

Tensor DreamerEncoder::Pictures(const Tensor& view) const {
  // [N, H, W, C] in memory, [N, C, H, W] to convolutions.
  Tensor x = (view - 0.5).reshape({-1, kPictureRows, kPictureColumns, 1});
  for (const DreamerDense& layer : layers_.layers) {
    const Tensor mixed = torch::conv2d(x.permute({0, 3, 1, 2}), layer.weight, layer.bias,
                                       /*stride=*/1, /*padding=*/kConvKernel / 2);
    x = layer.Activate(PoolTwoByTwo(mixed.permute({0, 2, 3, 1})));
  }
  return x.reshape({x.size(0), -1});
}

Tensor PoolTwoByTwo(const Tensor& x) {
  Tensor even = x;
  if (x.size(1) % 2 != 0 || x.size(2) % 2 != 0) {
    even = torch::constant_pad_nd(x, {0, 0, 0, x.size(2) % 2, 0, x.size(1) % 2},
                                  -std::numeric_limits<double>::infinity());
  }
  return even.reshape({x.size(0), even.size(1) / 2, 2, even.size(2) / 2, 2, x.size(3)})
      .amax({2, 4});
}

}  // namespace tetrion
