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
inline EnvSpec PlanesEnv() {
  return EnvWithView<448>("planes", 8, false);
}
inline EnvSpec MaskedPlanesEnv() {
  return EnvWithView<448>("planes", 40, true);
}
inline EnvSpec VectorEnv() {
  return EnvWithView<4>("vector", 2, false);
}

}  // namespace tetrion::testing
