#include "lib/nn/dreamer/dreamer_dream.h"

#include <algorithm>
#include <cstddef>

#include "lib/core/check.h"
#include "lib/nn/dreamer/draw_latents.h"
#include "lib/nn/dreamer/dreamer_model.h"
#include "lib/nn/dreamer/primitives.h"
#include "lib/nn/torch/host_memory.h"
#include "lib/nn/torch/torch_pch.h"
#include "lib/nn/torch/use_threads.h"

namespace tetrion {
namespace {

using torch::Tensor;

constexpr int kThreads = 1;

std::vector<float> Numbers(const Tensor& tensor) {
  const Tensor whole = tensor.contiguous();
  const auto* data = whole.const_data_ptr<float>();
  return {data, data + whole.numel()};
}

// One-hot [1, S, C] of the state that is drawn.
Tensor Drawn(const Tensor& log_probs, const LatentDraw& of) {
  const std::int64_t groups = log_probs.size(-2), classes = log_probs.size(-1);
  const Tensor input = log_probs.contiguous(), out = torch::zeros({1, groups, classes});
  std::vector<std::uint8_t> drawn(static_cast<std::size_t>(groups));
  DrawLatents(of, input.const_data_ptr<float>(), static_cast<std::uint32_t>(groups),
              static_cast<std::uint32_t>(classes), drawn.data());
  for (std::int64_t g = 0; g < groups; ++g) out[0][g][drawn[static_cast<std::size_t>(g)]] = 1.0F;
  return out;
}

// What the decoder says, as the environment would have written it.
Tensor ViewOf(const Tensor& decoded, DreamerInput input) {
  switch (input) {
    case DreamerInput::kVector:
      return Symexp(decoded);
    case DreamerInput::kPlanes:
      return torch::sigmoid(decoded);
    case DreamerInput::kPixels:
      break;
  }
  return decoded;
}

}  // namespace

struct DreamerDream::Model {
  Model(const DreamerShape& shape, std::span<float> parameters)
      : model(shape, parameters, /*gradients=*/{}) {}
  const DreamerModel model;
};

DreamerDream::DreamerDream(const DreamerShape& shape)
    : shape_(shape),
      parameters_(FloatsOf(DreamerLayout(shape))),
      model_(std::make_unique<const Model>(shape, parameters_)) {}

DreamerDream::~DreamerDream() = default;

DreamtRows DreamerDream::Dream(const PlayedRows& played, int context, std::uint64_t seed) const {
  TETRION_CHECK(context >= 1 && played.rows >= context, "a dream begins behind rows that are seen");
  UseThreads(kThreads);
  DreamtRows rows;
  InHostMemory([&] {
    const c10::InferenceMode guard;
    const DreamerModel& model = model_->model;
    const Tensor view =
        torch::from_blob(const_cast<float*>(played.view), {played.rows, shape_.floats});
    Tensor deter = torch::zeros({1, shape_.size.deter});
    Tensor stoch = torch::zeros({1, shape_.size.stoch, shape_.size.classes});
    std::vector<Tensor> features;
    for (int row = 0; row < played.rows; ++row) {
      const Tensor action = torch::zeros({1, shape_.actions});
      if (row > 0) action[0][played.action[row - 1]] = 1.0F;
      deter = model.Core(deter, stoch, action);
      const Tensor log_probs =
          row < context ? model.PosteriorLogProbs(deter, model.Encode(view.narrow(0, row, 1)))
                        : model.PriorLogProbs(deter);
      stoch = Drawn(log_probs, {.seed = seed, .token = 0, .step = static_cast<std::uint32_t>(row)});
      features.push_back(model.Feature(deter, stoch));
    }
    const Tensor feature = torch::cat(features);
    const Tensor decoded = model.Decode(feature);
    rows = {.view = Numbers(ViewOf(decoded, shape_.input)),
            .loss = Numbers(model.ReconstructionLoss(decoded, view)),
            .reward = Numbers(TwoHotMean(model.RewardLogits(feature))),
            .cont = Numbers(torch::sigmoid(model.ContinueLogit(feature)))};
  });
  return rows;
}

}  // namespace tetrion
