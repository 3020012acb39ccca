#include "lib/region_v2/compat_checks.h"

#include <cstdio>
#include <utility>

#include "lib/core/align.h"
#include "lib/region_v2/compat_ring.h"

namespace tetrion {
namespace {

constexpr CompatStreamPlace kLargePlace = {kCompatLargeObsRing, kCompatLargeActionRing};
constexpr CompatStreamPlace kSmallPlace = {kCompatObsRing, kCompatActionRing};

std::string Hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string Differs(const std::string& header, const char* field, std::uint32_t have,
                    std::uint32_t need) {
  return header + ": " + field + " is " + Hex(have) + ", need " + Hex(need);
}

std::string NameOf(const CompatRingPlace& place) {
  return std::string(place.name) + " at " + Hex(place.offset);
}

// Empty when an end can attach.
std::string RingProblem(const std::byte* base, const CompatRingPlace& place) {
  const std::byte* at = base + place.offset;
  const std::string name = NameOf(place);
  const std::uint32_t magic = LoadCompatWord(at, offsetof(CompatRingHeader, magic));
  const std::uint32_t size = LoadCompatWord(at, offsetof(CompatRingHeader, size));
  const std::uint32_t head = LoadCompatWord(at, offsetof(CompatRingHeader, head));
  const std::uint32_t tail = LoadCompatWord(at, offsetof(CompatRingHeader, tail));
  if (magic != place.magic) return Differs(name, "magic", magic, place.magic);
  if (!IsPowerOfTwo(size))
    return name + ": size " + std::to_string(size) + " is not a power of two, need " +
           std::to_string(place.size);
  if (size != place.size) return Differs(name, "size", size, place.size);
  if (head >= size) return name + ": head " + std::to_string(head) + " is beyond the ring";
  if (tail >= size) return name + ": tail " + std::to_string(tail) + " is beyond the ring";
  return "";
}

std::string DoorbellProblem(const std::byte* base) {
  const std::string name = "doorbell block at " + Hex(kCompatDoorbell);
  const std::byte* at = base + kCompatDoorbell;
  const std::uint32_t magic = LoadCompatWord(at, offsetof(CompatDoorbellBlock, magic));
  const std::uint32_t version = LoadCompatWord(at, offsetof(CompatDoorbellBlock, version));
  if (magic != kCompatDoorbellMagic) return Differs(name, "magic", magic, kCompatDoorbellMagic);
  if (version != kCompatVersion) return Differs(name, "version", version, kCompatVersion);
  return "";
}

// `most`: blocks that fit in front of whatever follows the heap.
std::string HeapProblem(const std::byte* base, std::uint32_t most) {
  const std::string name = "heap control at " + Hex(kCompatHeapControl);
  const std::byte* at = base + kCompatHeapControl;
  const std::uint32_t magic = LoadCompatWord(at, offsetof(CompatHeapControl, magic));
  const std::uint32_t version = LoadCompatWord(at, offsetof(CompatHeapControl, version));
  const std::uint32_t blocks = LoadCompatWord(at, offsetof(CompatHeapControl, total_blocks));
  if (magic != kCompatHeapMagic) return Differs(name, "magic", magic, kCompatHeapMagic);
  if (version != kCompatVersion) return Differs(name, "version", version, kCompatVersion);
  if (blocks < kCompatHeapBlocks || blocks > most) {
    return name + ": total_blocks is " + std::to_string(blocks) + ", need " +
           std::to_string(kCompatHeapBlocks) + " to " + std::to_string(most);
  }
  return "";
}

bool Holds(std::span<const std::byte> memory, const CompatStreamPlace& place) {
  return memory.size() >= place.action + kCompatActionRing - kCompatObsRing;
}

// The problems of a region; with `unfinished`, headers without a magic are none.
class Judge {
 public:
  Judge(std::span<const std::byte> memory, bool unfinished)
      : memory_(memory), unfinished_(unfinished) {}

  std::vector<std::string> Run() {
    if (memory_.size() < kCompatRegionBytes) {
      return {"too small: " + std::to_string(memory_.size()) + " bytes, need " +
              std::to_string(kCompatRegionBytes)};
    }
    const std::byte* base = memory_.data();
    for (const CompatRingPlace& place : {kCompatCommandPlace, kCompatResponsePlace}) {
      if (Judged(place.offset)) Add(RingProblem(base, place));
    }
    if (Judged(kCompatDoorbell)) Add(DoorbellProblem(base));
    if (Judged(kCompatHeapControl)) Add(HeapProblem(base, MostHeapBlocks()));
    if (const std::optional<CompatStreamPlace> place = FindCompatStream(memory_)) {
      Add(RingProblem(base, ObsPlaceOf(*place)));
      Add(RingProblem(base, ActionPlaceOf(*place)));
    } else {
      for (const CompatStreamPlace& candidate : {kLargePlace, kSmallPlace}) {
        if (Holds(memory_, candidate)) JudgePart(candidate);
      }
    }
    return std::move(problems_);
  }

 private:
  std::uint32_t Magic(std::size_t offset) const {
    return LoadCompatWord(memory_.data() + offset, 0);
  }
  std::uint32_t MostHeapBlocks() const {
    const auto rings = BegunCompatStream(memory_);
    return rings && rings->obs == kCompatObsRing ? kCompatMostHeapBlocks
                                                 : kCompatMostHeapBlocksWithoutRings;
  }
  bool Judged(std::size_t offset) const { return !unfinished_ || Magic(offset) != 0; }
  void Add(std::string problem) {
    if (!problem.empty()) problems_.push_back(std::move(problem));
  }
  // A place whose two magics are not both right: both may be absent.
  void JudgePart(const CompatStreamPlace& place) {
    const CompatRingPlace rings[] = {ObsPlaceOf(place), ActionPlaceOf(place)};
    for (const CompatRingPlace& ring : rings) {
      if (Magic(ring.offset) != 0) Add(RingProblem(memory_.data(), ring));
    }
    if (unfinished_) return;
    for (int i = 0; i < 2; ++i) {
      if (Magic(rings[i].offset) != 0 || Magic(rings[1 - i].offset) != kCompatStreamMagic) continue;
      Add(NameOf(rings[i]) + ": magic is 0x0, but " + NameOf(rings[1 - i]) +
          " is there: a kernel has not finished, start it again");
    }
  }

  const std::span<const std::byte> memory_;
  const bool unfinished_;
  std::vector<std::string> problems_;
};

}  // namespace

CompatRingPlace ObsPlaceOf(const CompatStreamPlace& place) {
  return {"OBS ring", place.obs, kCompatStreamMagic, kCompatStreamEntries};
}
CompatRingPlace ActionPlaceOf(const CompatStreamPlace& place) {
  return {"ACTION ring", place.action, kCompatStreamMagic, kCompatStreamEntries};
}

std::uint32_t LoadCompatWord(const std::byte* at, std::size_t field) {
  // Regions are mapped for writing, also for those who only look; atomic_ref knows no const.
  auto* word = reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(at) + field);
  return CompatWord(*word).load(std::memory_order_acquire);
}

std::optional<CompatStreamPlace> FindCompatStream(std::span<const std::byte> memory) {
  for (const CompatStreamPlace& place : {kLargePlace, kSmallPlace}) {
    if (Holds(memory, place) &&
        LoadCompatWord(memory.data() + place.obs, 0) == kCompatStreamMagic &&
        LoadCompatWord(memory.data() + place.action, 0) == kCompatStreamMagic)
      return place;
  }
  return std::nullopt;
}

std::optional<CompatStreamPlace> BegunCompatStream(std::span<const std::byte> memory) {
  for (const CompatStreamPlace& place : {kLargePlace, kSmallPlace}) {
    if (!Holds(memory, place)) continue;
    for (const std::size_t ring : {place.obs, place.action}) {
      if (LoadCompatWord(memory.data() + ring, 0) == kCompatStreamMagic) return place;
    }
  }
  return std::nullopt;
}

std::vector<std::string> CompatProblems(std::span<const std::byte> memory) {
  return Judge(memory, /*unfinished=*/false).Run();
}

std::vector<std::string> CompatProblemsBeforeLayout(std::span<const std::byte> memory) {
  return Judge(memory, /*unfinished=*/true).Run();
}

}  // namespace tetrion
