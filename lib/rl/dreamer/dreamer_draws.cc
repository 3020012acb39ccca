#include "lib/rl/dreamer/dreamer_draws.h"

#include "lib/nn/dreamer/draw_one_hots.h"
#include "lib/nn/dreamer/update_nodes.h"

namespace tetrion {
namespace {

using torch::Tensor;

// Blocks of words that `rows` rows use.
std::uint32_t BlocksOf(std::int64_t rows) {
  return static_cast<std::uint32_t>((rows + kRowsOfADraw - 1) / kRowsOfADraw);
}

}  // namespace

OneHotSampler MakeUpdateSampler(std::uint64_t seed, std::int64_t updates) {
  return [seed, updates, block = std::uint32_t{0}](const Tensor& log_probs) mutable {
    const Tensor input = log_probs.detach().exp().contiguous();
    const Tensor sample = torch::zeros_like(input);
    const std::int64_t classes = input.size(-1), rows = input.numel() / classes;
    const float* in = input.const_data_ptr<float>();
    float* out = sample.mutable_data_ptr<float>();
    PhiloxBlock draw{};
    for (std::int64_t n = 0; n < rows; ++n, in += classes, out += classes) {
      if (n % kRowsOfADraw == 0) draw = UpdateWords(seed, updates, block++);
      out[DrawClass(in, static_cast<std::uint32_t>(classes), draw.word[n % kRowsOfADraw])] = 1.0F;
    }
    return sample;
  };
}

OneHotSampler MakeDeviceSampler(std::uint64_t seed, const Tensor& updates, UpdateKernels& kernels) {
  return [seed, updates, &kernels, block = std::uint32_t{0}](const Tensor& log_probs) mutable {
    const UpdateDraw draw = {
        .seed = seed, .updates = updates.const_data_ptr<std::int64_t>(), .first_block = block};
    block += BlocksOf(log_probs.numel() / log_probs.size(-1));
    return DrawOneHotsOnDevice(log_probs, draw, kernels);
  };
}

}  // namespace tetrion
