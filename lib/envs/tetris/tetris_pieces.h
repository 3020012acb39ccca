#pragma once

#include <cstdint>

#include "lib/core/host_device.h"
#include "lib/core/philox.h"
#include "lib/envs/tetris/tetris_record.h"

namespace tetrion {

// Where a game's pieces come from. The rules take any type with `int Next()` returning ids 0..6.

// The pieces of one token: the k-th depends on (seed, token, k) only. 24 bytes of lane state.
//
// 7-bag: bag b is a Fisher-Yates shuffle of 0..6, j from 6 down to 1, swapping with
// floor(word * (j + 1) / 2^32), words 0..5 of Philox blocks 2b, 2b+1 of purpose kPieces.
// Independent pieces (`iid`): piece k is floor(word * 7 / 2^32), word k % 4 of block k / 4 of
// purpose kIidPieces.
struct PhiloxPieces {
  std::uint64_t seed = 0;
  std::uint64_t token_id = 0;
  std::uint32_t drawn = 0;        // pieces drawn so far, or bags with 7-bags
  std::uint32_t bag = kEmptyBag;  // pieces left, 3 bits each, next lowest, under a 1 bit; kIid

  static constexpr std::uint32_t kEmptyBag = 1;
  static constexpr std::uint32_t kIid = 0;

  TETRION_HOST_DEVICE static PhiloxPieces Of(std::uint64_t seed, std::uint64_t token_id, bool iid) {
    return {seed, token_id, 0, iid ? kIid : kEmptyBag};
  }

  TETRION_HOST_DEVICE_INLINE int Next() {
    if (bag == kIid) {
      const PhiloxBlock block = PhiloxDraw(seed, token_id, drawn / 4, PhiloxPurpose::kIidPieces);
      return static_cast<int>(BoundedDraw(block.word[drawn++ % 4], kTetrisPieces));
    }
    if (bag == kEmptyBag) bag = Shuffled(drawn++);
    const int id = static_cast<int>(bag & 7);
    bag >>= 3;
    return id;
  }

  // Whether Next keeps to ids 0..6: `bag` is one of pieces, or says that there is none.
  TETRION_HOST_DEVICE bool IsValid() const {
    if (bag == kIid) return true;
    std::uint32_t left = bag;
    for (; left >= 8; left >>= 3) {
      if ((left & 7) >= kTetrisPieces) return false;
    }
    return left == kEmptyBag && bag < 1U << 22;
  }

  // Bag `number` packed as in `bag`.
  TETRION_HOST_DEVICE std::uint32_t Shuffled(std::uint32_t number) const {
    const PhiloxBlock low = PhiloxDraw(seed, token_id, 2 * number, PhiloxPurpose::kPieces);
    const PhiloxBlock high = PhiloxDraw(seed, token_id, 2 * number + 1, PhiloxPurpose::kPieces);
    std::uint32_t packed = 06543210U;  // octal digits are the slots
    for (std::uint32_t j = 6; j >= 1; --j) {
      const std::uint32_t word = j > 2 ? low.word[6 - j] : high.word[2 - j];
      const std::uint32_t other = BoundedDraw(word, j + 1);
      const std::uint32_t difference = (packed >> (3 * j) ^ packed >> (3 * other)) & 7;
      packed ^= difference << (3 * j) ^ difference << (3 * other);
    }
    return packed | 1U << 21;
  }
};

// A given sequence, repeated when it ends: recorded games and tests. Does not own `ids`.
struct SequencePieces {
  const std::uint8_t* ids = nullptr;  // [count] values 0..6
  std::uint32_t count = 0;
  std::uint32_t next = 0;

  TETRION_HOST_DEVICE int Next() {
    const int id = ids[next];
    next = next + 1 == count ? 0 : next + 1;
    return id;
  }
};

}  // namespace tetrion
