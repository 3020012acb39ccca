#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/envs/cartpole/cartpole_rules.h"
#include "lib/envs/registry.h"

namespace tetrion {

EnvEntry CartPoleEntry();

// As ObsSpec::expand wants it: `records` is [n, 16] u8, `out` is [n, 4] f32, the same numbers.
void ExpandVector(const std::byte* records, std::int64_t n, int queue_size, float* out);

// As ObsSpec::check wants it, since a record's floats go to the network as they are: all finite and
// of a size that an episode can reach.
const char* CheckCartPoleRecords(const std::byte* records, std::int64_t n);

// Our own drawing of CartPole, 100 x 150 units of `scale` x `scale` pixels (scale 4: gymnasium's
// 400 x 600): white, the track a black line over +-2.4 m, a black cart, a brown pole of twice the
// half length. A cart beyond the picture is drawn at its edge; what is not finite as 0.
constexpr RgbSize CartPoleRgbSize(int scale) {
  return {100 * scale, 150 * scale};
}
// `out` holds CartPoleRgbSize(scale).Bytes().
void RenderCartPoleRgb(const CartPoleRecord& record, int scale, std::uint8_t* out);

// Seven lines for a terminal: the pole, the cart on its track, and the numbers. What is not finite
// is drawn as 0.
std::string RenderCartPoleText(const CartPoleRecord& record);

}  // namespace tetrion
