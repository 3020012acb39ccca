#pragma once

#include <cstddef>
#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/core/philox.h"
#include "lib/nn/categorical.h"

namespace tetrion {

// Whose sampled state it is: of a seed, an episode's token, and the step in the episode.
struct LatentDraw {
  std::uint64_t seed = 1;
  std::uint64_t token = 0;
  std::uint32_t step = 0;
};

inline constexpr std::uint32_t kLatentsOfADraw = 4;  // groups that a block of Philox has words for

// The block for groups 4 `block`.. of `groups`: each has a word of its own.
TETRION_HOST_DEVICE inline PhiloxBlock LatentWords(const LatentDraw& of, std::uint32_t groups,
                                                   std::uint32_t block) {
  const std::uint32_t blocks = (groups + kLatentsOfADraw - 1) / kLatentsOfADraw;
  return PhiloxDraw(of.seed, of.token, of.step * blocks + block, PhiloxPurpose::kLatents);
}

// The class of a group with log-probabilities [classes].
template <typename LogProbs>
TETRION_HOST_DEVICE inline std::uint8_t DrawLatent(const LogProbs& log_probs, std::uint32_t classes,
                                                   std::uint32_t word) {
  return static_cast<std::uint8_t>(SampleCategorical(log_probs, static_cast<int>(classes),
                                                     /*log_normaliser=*/0.0F, UnitDraw(word)));
}

// Samples the classes of a state: log_probs [groups, classes] -> drawn [groups]. A pure function of
// `of` and the probabilities.
inline void DrawLatents(const LatentDraw& of, const float* log_probs, std::uint32_t groups,
                        std::uint32_t classes, std::uint8_t* drawn) {
  PhiloxBlock draw = {};
  for (std::uint32_t g = 0; g < groups; ++g) {
    if (g % kLatentsOfADraw == 0) draw = LatentWords(of, groups, g / kLatentsOfADraw);
    drawn[g] =
        DrawLatent(log_probs + std::size_t{g} * classes, classes, draw.word[g % kLatentsOfADraw]);
  }
}

}  // namespace tetrion
