#include "lib/rl/dreamer/dreamer_draws.h"

#include "lib/core/philox.h"

namespace tetrion {
namespace {

using torch::Tensor;

// The first class whose cumulative probability exceeds `unit`; the last one where none does, be it
// by rounding or since a number is not finite.
std::int64_t Pick(const float* probs, std::int64_t classes, float unit) {
  float sum = 0;
  for (std::int64_t c = 0; c + 1 < classes; ++c) {
    sum += probs[c];
    if (unit < sum) return c;
  }
  return classes - 1;
}

}  // namespace

OneHotSampler MakeUpdateSampler(std::uint64_t seed, std::uint64_t update) {
  // The highest bits keep the draws apart from those of tokens (00) and of initial weights (10).
  const std::uint64_t stream = std::uint64_t{3} << 62 | update;
  return [seed, stream, block = std::uint32_t{0}](const Tensor& log_probs) mutable {
    const Tensor input = log_probs.detach().exp().contiguous();
    const Tensor sample = torch::zeros_like(input);
    const std::int64_t classes = input.size(-1), rows = input.numel() / classes;
    const float* in = input.const_data_ptr<float>();
    float* out = sample.mutable_data_ptr<float>();
    PhiloxBlock draw{};
    for (std::int64_t n = 0; n < rows; ++n, in += classes, out += classes) {
      if (n % 4 == 0) draw = PhiloxDraw(seed, stream, block++, PhiloxPurpose::kLatents);
      out[Pick(in, classes, static_cast<float>(UnitDraw(draw.word[n % 4])))] = 1.0F;
    }
    return sample;
  };
}

}  // namespace tetrion
