#include "lib/rl/dreamer/dreamer_draws.h"

#include <algorithm>

#include "lib/nn/dreamer/draw_one_hots.h"
#include "lib/nn/dreamer/linear_kernels.h"
#include "lib/nn/dreamer/update_nodes.h"

namespace tetrion {
namespace {

using torch::Tensor;

constexpr std::int64_t kBlocksForAThread = 256;

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
    const std::uint32_t blocks = BlocksOf(rows), first = block;
    ForRows(blocks, kBlocksForAThread, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const PhiloxBlock draw = UpdateWords(seed, updates, first + static_cast<std::uint32_t>(b));
        const std::int64_t row = b * kRowsOfADraw;
        const std::int64_t last = std::min<std::int64_t>(row + kRowsOfADraw, rows);
        for (std::int64_t n = row; n < last; ++n) {
          const std::uint32_t drawn =
              DrawClass(in + n * classes, static_cast<std::uint32_t>(classes), draw.word[n - row]);
          out[n * classes + drawn] = 1.0F;
        }
      }
    });
    block += blocks;
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
