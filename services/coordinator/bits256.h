#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "lib/wire/messages.h"

namespace tetrion::coordinator {

// One bit for each token of a range.
struct Bits256 {
  std::array<std::uint64_t, 4> words{};

  bool Test(std::uint32_t i) const { return (words[i / 64] >> (i % 64) & 1U) != 0; }
  void Set(std::uint32_t i) { words[i / 64] |= std::uint64_t{1} << (i % 64); }
  std::uint32_t Count() const {
    int count = 0;
    for (const std::uint64_t word : words) count += std::popcount(word);
    return static_cast<std::uint32_t>(count);
  }
  bool All() const { return Count() == wire::kRangeTokens; }
  bool None() const { return (words[0] | words[1] | words[2] | words[3]) == 0; }

  Bits256 operator|(const Bits256& other) const {
    Bits256 result = *this;
    for (std::size_t i = 0; i < 4; ++i) result.words[i] |= other.words[i];
    return result;
  }
  Bits256 operator&(const Bits256& other) const {
    Bits256 result = *this;
    for (std::size_t i = 0; i < 4; ++i) result.words[i] &= other.words[i];
    return result;
  }
  Bits256 operator~() const {
    Bits256 result = *this;
    for (std::uint64_t& word : result.words) word = ~word;
    return result;
  }
  bool operator==(const Bits256&) const = default;

  // The wire's form; a bitmap of another size counts as empty.
  static Bits256 From(const wire::Bitmap& bitmap) {
    Bits256 result;
    if (bitmap.size() == wire::kRangeBitmapBytes) {
      std::memcpy(result.words.data(), bitmap.data(), wire::kRangeBitmapBytes);
    }
    return result;
  }
  wire::Bitmap ToBitmap() const {
    wire::Bitmap bitmap(wire::kRangeBitmapBytes);
    std::memcpy(bitmap.data(), words.data(), wire::kRangeBitmapBytes);
    return bitmap;
  }
};
static_assert(sizeof(Bits256) == wire::kRangeBitmapBytes);

}  // namespace tetrion::coordinator
