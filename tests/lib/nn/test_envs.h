#pragma once

#include <cstring>
#include <vector>

#include "lib/core/philox.h"
#include "lib/frame/specs.h"

namespace tetrion::testing {

// An environment whose record is its view, F floats: tests write views directly.
template <int kViewFloats>
void CopyRecords(const std::byte* records, std::int64_t n, int, float* out) {
  std::memcpy(out, records, static_cast<std::size_t>(n) * kViewFloats * sizeof(float));
}

template <int kViewFloats>
EnvSpec EnvWithView(const char* view, std::int32_t actions, bool has_mask) {
  EnvSpec env;
  env.name = "test";
  env.obs = {.record = "floats",
             .record_bytes = kViewFloats * sizeof(float),
             .view = view,
             .view_floats = kViewFloats,
             .queue_size = 0,
             .expand = CopyRecords<kViewFloats>};
  env.action = {.count = actions, .has_mask = has_mask};
  return env;
}

// Uniform numbers in [-1, 1), a pure function of the seed.
inline std::vector<float> Noise(std::size_t count, std::uint64_t seed) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const PhiloxBlock draw = PhiloxDraw(seed, i, 0, PhiloxPurpose::kSampler);
    values[i] = static_cast<float>(UnitDraw(draw.word[0]) * 2 - 1);
  }
  return values;
}

// Views of n states: noise, or where the view shows boards, columns of random cells before it.
inline std::vector<float> RandomViews(const EnvSpec& env, int n, std::uint64_t seed) {
  std::vector<float> views = Noise(static_cast<std::size_t>(n * env.obs.view_floats), seed);
  const int columns = env.obs.board_columns, floats = env.obs.action_floats;
  if (columns == 0) return views;
  for (int s = 0; s < n; ++s) {
    for (int part = 0; part <= env.action.count; ++part) {
      float* column = views.data() + s * env.obs.view_floats + part * floats;
      for (int c = 0; c < columns; ++c) {
        const PhiloxBlock draw =
            PhiloxDraw(seed, static_cast<std::uint64_t>(s),
                       static_cast<std::uint32_t>(part * columns + c), PhiloxPurpose::kActions);
        // Placements of a state differ in few columns.
        const bool common = part > 0 && draw.word[0] % 4 != 0;
        column[c] =
            common ? column[c - floats] : static_cast<float>(draw.word[1] & draw.word[2] & 0xFFFFF);
      }
    }
  }
  return views;
}

inline constexpr int kAfterstatesFloats = 40 * 16 + 48;

inline EnvSpec AfterstatesEnv() {
  EnvSpec env = EnvWithView<kAfterstatesFloats>("afterstates", 40, true);
  env.obs.action_floats = 16;
  env.obs.network = "scorer";
  return env;
}
inline EnvSpec AfterstatesDtEnv() {
  EnvSpec env = EnvWithView<40 * 24 + 53>("afterstates-dt", 40, true);
  env.obs.action_floats = 24;
  env.obs.network = "scorer";
  return env;
}
// As with a longer preview: 69 numbers of the state.
inline EnvSpec LongStateEnv() {
  EnvSpec env = EnvWithView<40 * 16 + 69>("afterstates", 40, true);
  env.obs.action_floats = 16;
  env.obs.network = "scorer";
  return env;
}
// Ten columns, lines and end of a placement; ten columns and 21 numbers of the state.
inline constexpr int kBoardsFloats = 40 * 12 + 31;
inline EnvSpec BoardsEnv() {
  EnvSpec env = EnvWithView<kBoardsFloats>("afterstates-boards", 40, true);
  env.obs.action_floats = 12;
  env.obs.board_columns = 10;
  env.obs.network = "columns";
  return env;
}
inline EnvSpec PlanesEnv() {
  return EnvWithView<448>("planes", 8, false);
}
// As with a shorter preview: no multiple of a vector.
inline EnvSpec OddPlanesEnv() {
  return EnvWithView<441>("planes", 8, false);
}
inline EnvSpec MaskedPlanesEnv() {
  return EnvWithView<448>("planes", 40, true);
}
inline EnvSpec VectorEnv() {
  return EnvWithView<4>("vector", 2, false);
}

}  // namespace tetrion::testing
