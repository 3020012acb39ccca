#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lib/core/philox.h"

namespace tetrion::wire {

// `bytes` with one to four changes, each a byte replaced or made 0xff or 0x7f, a bit turned, or the
// end cut off: the `i`-th draw under `seed`.
inline std::vector<std::byte> Mutated(std::vector<std::byte> bytes, std::uint64_t seed,
                                      std::uint64_t i) {
  const auto draw = [&](std::uint32_t which, std::uint32_t bound) {
    return BoundedDraw(PhiloxDraw(seed, i, which, PhiloxPurpose::kSampler).word[0], bound);
  };
  const std::uint32_t changes = 1 + draw(0, 4);
  for (std::uint32_t c = 0; c < changes; ++c) {
    const std::uint32_t at = draw(3 * c + 1, static_cast<std::uint32_t>(bytes.size()));
    const std::uint32_t kind = draw(3 * c + 2, 4);
    const std::uint32_t value = draw(3 * c + 3, 256);
    if (kind == 0) bytes[at] = static_cast<std::byte>(value);
    if (kind == 1) bytes[at] ^= static_cast<std::byte>(1U << (value % 8));
    if (kind == 2) bytes[at] = value < 128 ? std::byte{0xff} : std::byte{0x7f};
    if (kind == 3 && value < 16) bytes.resize(at + 1);
  }
  return bytes;
}

}  // namespace tetrion::wire
