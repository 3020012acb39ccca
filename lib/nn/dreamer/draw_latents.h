#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/core/philox.h"
#include "lib/nn/categorical.h"

namespace tetrion {

// Whose sampled state it is: of a seed, an episode's token, and the step in the episode.
struct LatentDraw {
  std::uint64_t seed = 1;
  std::uint64_t token = 0;
  std::uint32_t step = 0;
};

// Samples the classes of a state: log_probs [groups, classes] -> drawn [groups]. A pure function of
// `of` and the probabilities: every group has a word of its own.
inline void DrawLatents(const LatentDraw& of, const float* log_probs, std::uint32_t groups,
                        std::uint32_t classes, std::uint8_t* drawn) {
  constexpr std::uint32_t kWords = 4;  // of a draw
  const std::uint32_t blocks = (groups + kWords - 1) / kWords;
  PhiloxBlock draw = {};
  for (std::uint32_t g = 0; g < groups; ++g) {
    if (g % kWords == 0) {
      draw = PhiloxDraw(of.seed, of.token, of.step * blocks + g / kWords, PhiloxPurpose::kLatents);
    }
    drawn[g] = static_cast<std::uint8_t>(
        SampleCategorical(log_probs + std::size_t{g} * classes, static_cast<int>(classes),
                          /*log_normaliser=*/0.0F, UnitDraw(draw.word[g % kWords])));
  }
}

}  // namespace tetrion
