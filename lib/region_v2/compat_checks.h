#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lib/region_v2/compat_region.h"

namespace tetrion {

// What the headers of a region must hold, for those that judge it and those that lay it out. All of
// it only reads, from any thread, whatever the region holds.

struct CompatRingPlace {
  const char* name;
  std::size_t offset;
  std::uint32_t magic;
  std::uint32_t size;
};
inline constexpr CompatRingPlace kCompatCommandPlace = {"command ring", kCompatCommandRing,
                                                        kCompatCommandMagic, kCompatCommandEntries};
inline constexpr CompatRingPlace kCompatResponsePlace = {
    "response ring", kCompatResponseRing, kCompatResponseMagic, kCompatCommandEntries};
CompatRingPlace ObsPlaceOf(const CompatStreamPlace& place);
CompatRingPlace ActionPlaceOf(const CompatStreamPlace& place);

// A shared word at `field` bytes behind `at`; its acquire pairs with the release of the end that
// lays the header out.
std::uint32_t LoadCompatWord(const std::byte* at, std::size_t field);

// As CompatProblems, but a header whose magic is 0 is no problem: the kernel makes it.
std::vector<std::string> CompatProblemsBeforeLayout(std::span<const std::byte> memory);

// Where stream rings have been begun: one right magic of the two is enough. nullopt without.
std::optional<CompatStreamPlace> BegunCompatStream(std::span<const std::byte> memory);

}  // namespace tetrion
