#include "lib/stream/compat_region.h"

#include <atomic>
#include <cstdio>
#include <utility>

#include "lib/core/align.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/shm/futex.h"
#include "lib/stream/compat_ring.h"

namespace tetrion {
namespace {

struct RingPlace {
  const char* name;
  std::size_t offset;
  std::uint32_t magic;
  std::uint32_t size;
};
constexpr RingPlace kCommandPlace = {"command ring", kCompatCommandRing, kCompatCommandMagic,
                                     kCompatCommandEntries};
constexpr RingPlace kResponsePlace = {"response ring", kCompatResponseRing, kCompatResponseMagic,
                                      kCompatCommandEntries};

RingPlace ObsPlace(const CompatStreamPlace& place) {
  return {"OBS ring", place.obs, kCompatStreamMagic, kCompatStreamEntries};
}
RingPlace ActionPlace(const CompatStreamPlace& place) {
  return {"ACTION ring", place.action, kCompatStreamMagic, kCompatStreamEntries};
}

// The readers below judge regions mapped for writing; atomic_ref knows no const.
std::uint32_t Load(const std::byte* at, std::size_t field) {
  auto* word = reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(at) + field);
  return CompatWord(*word).load(std::memory_order_acquire);
}

std::string Hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string Differs(const std::string& header, const char* field, std::uint32_t have,
                    std::uint32_t need) {
  return header + ": " + field + " is " + Hex(have) + ", need " + Hex(need);
}

// Empty when an end can attach.
std::string RingProblem(const std::byte* base, const RingPlace& place) {
  const std::byte* at = base + place.offset;
  const std::string name = std::string(place.name) + " at " + Hex(place.offset);
  const std::uint32_t magic = Load(at, offsetof(CompatRingHeader, magic));
  const std::uint32_t size = Load(at, offsetof(CompatRingHeader, size));
  const std::uint32_t head = Load(at, offsetof(CompatRingHeader, head));
  const std::uint32_t tail = Load(at, offsetof(CompatRingHeader, tail));
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
  const std::uint32_t magic = Load(at, offsetof(CompatDoorbellBlock, magic));
  const std::uint32_t version = Load(at, offsetof(CompatDoorbellBlock, version));
  if (magic != kCompatDoorbellMagic) return Differs(name, "magic", magic, kCompatDoorbellMagic);
  if (version != kCompatVersion) return Differs(name, "version", version, kCompatVersion);
  return "";
}

std::string HeapProblem(const std::byte* base) {
  const std::string name = "heap control at " + Hex(kCompatHeapControl);
  const std::byte* at = base + kCompatHeapControl;
  const std::uint32_t magic = Load(at, offsetof(CompatHeapControl, magic));
  const std::uint32_t version = Load(at, offsetof(CompatHeapControl, version));
  const std::uint32_t blocks = Load(at, offsetof(CompatHeapControl, total_blocks));
  if (magic != kCompatHeapMagic) return Differs(name, "magic", magic, kCompatHeapMagic);
  if (version != kCompatVersion) return Differs(name, "version", version, kCompatVersion);
  if (blocks != kCompatHeapBlocks) return Differs(name, "total_blocks", blocks, kCompatHeapBlocks);
  return "";
}

void Store(std::uint32_t& word, std::uint32_t value,
           std::memory_order order = std::memory_order_relaxed) {
  CompatWord(word).store(value, order);
}

void LayOutRing(std::byte* base, const RingPlace& place) {
  auto& header = *reinterpret_cast<CompatRingHeader*>(base + place.offset);
  for (std::uint32_t* word : {&header.head, &header.tail, &header.producer_beat,
                              &header.consumer_beat, &header.reserved}) {
    Store(*word, 0);
  }
  Store(header.size, place.size);
  Store(header.epoch, 1);
  Store(header.magic, place.magic, std::memory_order_release);  // pairs with CompatRing::Attach
}

void LayOutDoorbell(std::byte* base) {
  auto& block = *reinterpret_cast<CompatDoorbellBlock*>(base + kCompatDoorbell);
  auto* words = reinterpret_cast<std::uint32_t*>(&block);
  for (std::size_t i = 1; i < sizeof block / sizeof *words; ++i) Store(words[i], 0);
  Store(block.version, kCompatVersion);
  Store(block.cmd_flags, kCompatDoorbellEnabled);
  Store(block.rsp_flags, kCompatDoorbellEnabled);
  Store(block.magic, kCompatDoorbellMagic, std::memory_order_release);
}

void LayOutHeap(std::byte* base) {
  auto& control = *reinterpret_cast<CompatHeapControl*>(base + kCompatHeapControl);
  auto* words = reinterpret_cast<std::uint32_t*>(&control);
  for (std::size_t i = 1; i < sizeof control / sizeof *words; ++i) Store(words[i], 0);
  Store(control.version, kCompatVersion);
  Store(control.total_blocks, kCompatHeapBlocks);
  Store(control.free_blocks, kCompatHeapBlocks);
  Store(control.next_blob_id, 1);
  Store(control.magic, kCompatHeapMagic, std::memory_order_release);
}

// Lays a part out unless it is there; returns whether it was. `problem` judges it afterwards.
template <typename LayOut, typename Problem>
bool LayOutOrKeep(std::byte* base, std::size_t offset, LayOut&& lay_out, Problem&& problem) {
  const bool there = Load(base + offset, 0) != 0;
  if (!there) lay_out();
  if (const std::string wrong = problem(); !wrong.empty()) {
    throw Error(ExitCode::kConfig, "unusable region: " + wrong +
                                       "; another program's or a damaged region: remove it or "
                                       "choose another file");
  }
  return there;
}

bool LayOutOrAdoptRing(std::byte* base, const RingPlace& place) {
  const bool adopted = LayOutOrKeep(
      base, place.offset, [&] { LayOutRing(base, place); },
      [&] { return RingProblem(base, place); });
  if (adopted) {
    auto& header = *reinterpret_cast<CompatRingHeader*>(base + place.offset);
    Store(header.epoch, CompatWord(header.epoch).load(std::memory_order_relaxed) + 1);
  }
  return adopted;
}

// The kernel's tail to the ring's head. The head was judged a moment ago; it is judged again.
void SkipConsumed(std::byte* base, const RingPlace& place) {
  auto& header = *reinterpret_cast<CompatRingHeader*>(base + place.offset);
  const std::uint32_t head = CompatWord(header.head).load(std::memory_order_acquire);
  if (head < place.size) Store(header.tail, head, std::memory_order_release);
}

}  // namespace

std::optional<CompatStreamPlace> FindCompatStream(std::span<const std::byte> memory) {
  for (const CompatStreamPlace place :
       {CompatStreamPlace{kCompatLargeObsRing, kCompatLargeActionRing},
        CompatStreamPlace{kCompatObsRing, kCompatActionRing}}) {
    if (place.action + kCompatActionRing - kCompatObsRing > memory.size()) continue;
    if (Load(memory.data() + place.obs, 0) == kCompatStreamMagic &&
        Load(memory.data() + place.action, 0) == kCompatStreamMagic)
      return place;
  }
  return std::nullopt;
}

std::vector<std::string> CompatProblems(std::span<const std::byte> memory) {
  std::vector<std::string> problems;
  if (memory.size() < kCompatRegionBytes) {
    problems.push_back("too small: " + std::to_string(memory.size()) + " bytes, need " +
                       std::to_string(kCompatRegionBytes));
    return problems;
  }
  const std::byte* base = memory.data();
  const auto add = [&](std::string problem) {
    if (!problem.empty()) problems.push_back(std::move(problem));
  };
  add(RingProblem(base, kCommandPlace));
  add(RingProblem(base, kResponsePlace));
  add(DoorbellProblem(base));
  add(HeapProblem(base));
  if (const std::optional<CompatStreamPlace> place = FindCompatStream(memory)) {
    add(RingProblem(base, ObsPlace(*place)));
    add(RingProblem(base, ActionPlace(*place)));
  }
  return problems;
}

bool LayOutOrAdoptCompat(std::span<std::byte> memory, bool stream) {
  if (memory.size() < kCompatRegionBytes) {
    throw Error(ExitCode::kConfig, "unusable region: " + CompatProblems(memory).front());
  }
  std::byte* base = memory.data();
  bool adopted = LayOutOrKeep(
      base, kCompatHeapControl, [&] { LayOutHeap(base); }, [&] { return HeapProblem(base); });
  adopted |= LayOutOrKeep(
      base, kCompatDoorbell, [&] { LayOutDoorbell(base); }, [&] { return DoorbellProblem(base); });
  std::optional<CompatStreamPlace> place = FindCompatStream(memory);
  if (!place && stream) {
    place = memory.size() >= kCompatLargeRegionBytes
                ? CompatStreamPlace{kCompatLargeObsRing, kCompatLargeActionRing}
                : CompatStreamPlace{kCompatObsRing, kCompatActionRing};
  }
  if (place) {
    if (LayOutOrAdoptRing(base, ObsPlace(*place))) SkipConsumed(base, ObsPlace(*place));
    adopted |= LayOutOrAdoptRing(base, ActionPlace(*place));
  }
  if (LayOutOrAdoptRing(base, kResponsePlace)) SkipConsumed(base, kResponsePlace);
  return LayOutOrAdoptRing(base, kCommandPlace) || adopted;
}

CompatRegion CompatRegion::Open(const std::string& path, CompatRole role, std::size_t bytes,
                                std::int64_t timeout_ns) {
  if (bytes != kCompatRegionBytes && bytes != kCompatLargeRegionBytes)
    throw Error(ExitCode::kUsage,
                "a region has 1048576 or 2097152 bytes, not " + std::to_string(bytes));
  const bool kernel = role == CompatRole::kKernel;
  const Deadline deadline(MonotonicClock::Get(), timeout_ns);
  std::atomic<std::uint32_t> pause{0};
  while (true) {
    try {
      CompatRegion region(kernel ? MappedFile::OpenOrCreate(path, bytes, kCompatRegionBytes)
                                 : MappedFile::Open(path, kCompatRegionBytes));
      // Byte 0 is the kernel's, byte 1 the host's.
      const ByteLock lock = region.file_.LockByte(kernel ? 0 : 1);
      const std::string name = kernel ? "kernel" : "host";
      if (lock == ByteLock::kHeldElsewhere) {
        throw Error(ExitCode::kTryAgain,
                    path + ": region owned by someone else: the " + name +
                        "'s role is taken (both ends claiming the same role?); stop the other " +
                        name + " or start this end as " + (kernel ? "host" : "kernel"));
      }
      if (lock == ByteLock::kUnsupported) {
        log::warn("{} cannot be locked: a second {} on it would go unnoticed", path, name);
      }
      return region;
    } catch (const Error&) {
      if (kernel || deadline.Passed()) throw;
    }
    constexpr std::int64_t kLookNs = 5 * kNanosPerMilli;
    static_cast<void>(FutexWait(pause, 0, std::min(kLookNs, deadline.LeftNs())));
  }
}

}  // namespace tetrion
