#pragma once

#include <cstdint>

#include "lib/core/host_device.h"

namespace tetrion {

// What a draw is for: word 3 of the counter, so that streams of one token never overlap.
enum class PhiloxPurpose : std::uint32_t {
  kPieces = 0,
  kIidPieces = 1,
  kInitialState = 2,
  kActions = 3,
  kLatents = 4,
  kSampler = 5,
};

struct PhiloxBlock {
  std::uint32_t word[4];
};

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a pure
// function of counter and key, so any draw can be made anywhere, in any order, on CPU and GPU
// alike.
TETRION_HOST_DEVICE inline PhiloxBlock Philox4x32(PhiloxBlock counter, std::uint32_t key0,
                                                  std::uint32_t key1) {
  constexpr std::uint32_t kMul0 = 0xD2511F53u, kMul1 = 0xCD9E8D57u;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9u, kWeyl1 = 0xBB67AE85u;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = static_cast<std::uint64_t>(kMul0) * counter.word[0];
    const std::uint64_t p1 = static_cast<std::uint64_t>(kMul1) * counter.word[2];
    // Before the products are there: a round takes as long as these and one operation.
    const std::uint32_t word1 = counter.word[1] ^ key0, word3 = counter.word[3] ^ key1;
    counter = {{static_cast<std::uint32_t>(p1 >> 32) ^ word1, static_cast<std::uint32_t>(p1),
                static_cast<std::uint32_t>(p0 >> 32) ^ word3, static_cast<std::uint32_t>(p0)}};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

// Block `block` of the draws of token `token_id` for `purpose` under `seed`. Everything random in
// an episode comes from here: never from thread, lane count or wall time.
TETRION_HOST_DEVICE inline PhiloxBlock PhiloxDraw(std::uint64_t seed, std::uint64_t token_id,
                                                  std::uint32_t block, PhiloxPurpose purpose) {
  const PhiloxBlock counter = {{static_cast<std::uint32_t>(token_id),
                                static_cast<std::uint32_t>(token_id >> 32), block,
                                static_cast<std::uint32_t>(purpose)}};
  return Philox4x32(counter, static_cast<std::uint32_t>(seed),
                    static_cast<std::uint32_t>(seed >> 32));
}

// Uniform integer in [0, bound) without rejection; the bias is below bound / 2^32.
TETRION_HOST_DEVICE inline std::uint32_t BoundedDraw(std::uint32_t word, std::uint32_t bound) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * bound) >> 32);
}

// Uniform double in [0, 1) with 32 bits.
TETRION_HOST_DEVICE inline double UnitDraw(std::uint32_t word) {
  return static_cast<double>(word) * (1.0 / 4294967296.0);
}

}  // namespace tetrion
