#include "lib/region_v2/compat_region.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/region_v2/compat_checks.h"
#include "lib/shm/bell.h"

namespace tetrion {
namespace {

void Store(std::uint32_t& word, std::uint32_t value,
           std::memory_order order = std::memory_order_relaxed) {
  CompatWord(word).store(value, order);
}

// Every word but the first, which is the magic and comes last.
template <typename Block>
void ZeroBehindMagic(Block& block) {
  auto* words = reinterpret_cast<std::uint32_t*>(&block);
  for (std::size_t i = 1; i < sizeof block / sizeof *words; ++i) Store(words[i], 0);
}

void LayOutRing(std::byte* base, const CompatRingPlace& place) {
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
  ZeroBehindMagic(block);
  Store(block.version, kCompatVersion);
  Store(block.cmd_flags, kCompatDoorbellEnabled);
  Store(block.rsp_flags, kCompatDoorbellEnabled);
  Store(block.magic, kCompatDoorbellMagic, std::memory_order_release);
}

void LayOutHeap(std::byte* base) {
  auto& control = *reinterpret_cast<CompatHeapControl*>(base + kCompatHeapControl);
  ZeroBehindMagic(control);
  Store(control.version, kCompatVersion);
  Store(control.total_blocks, kCompatHeapBlocks);
  Store(control.free_blocks, kCompatHeapBlocks);
  Store(control.next_blob_id, 1);
  Store(control.magic, kCompatHeapMagic, std::memory_order_release);
}

// Lays a part out unless it has a magic; returns whether it had. The caller has judged the region.
template <typename LayOut>
bool LayOutOrKeep(std::byte* base, std::size_t offset, LayOut&& lay_out) {
  const bool there = LoadCompatWord(base + offset, 0) != 0;
  if (!there) lay_out();
  return there;
}

bool LayOutOrAdoptRing(std::byte* base, const CompatRingPlace& place) {
  const bool adopted = LayOutOrKeep(base, place.offset, [&] { LayOutRing(base, place); });
  if (adopted) {
    auto& header = *reinterpret_cast<CompatRingHeader*>(base + place.offset);
    Store(header.epoch, CompatWord(header.epoch).load(std::memory_order_relaxed) + 1);
  }
  return adopted;
}

// The kernel's tail to the ring's head. The head was judged a moment ago; it is judged again. Of a
// host that is writing it this moment the reset that follows makes good what is missed here.
void SkipConsumed(std::byte* base, const CompatRingPlace& place) {
  auto& header = *reinterpret_cast<CompatRingHeader*>(base + place.offset);
  const std::uint32_t head = CompatPeerIndex::Settled(header.head);
  if (head < place.size) Store(header.tail, head, std::memory_order_release);
}

// Where stream rings can be made. nullopt where another program's heap has taken their place.
std::optional<CompatStreamPlace> FreeStreamPlace(std::span<const std::byte> memory) {
  if (memory.size() >= kCompatLargeRegionBytes)
    return CompatStreamPlace{kCompatLargeObsRing, kCompatLargeActionRing};
  const std::uint32_t blocks =
      LoadCompatWord(memory.data() + kCompatHeapControl, offsetof(CompatHeapControl, total_blocks));
  if (blocks > kCompatMostHeapBlocks) return std::nullopt;
  return CompatStreamPlace{kCompatObsRing, kCompatActionRing};
}

// The next magic a kernel still has to write; null when none is missing.
std::atomic<std::uint32_t>* MissingMagic(std::span<std::byte> memory) {
  const auto magic_at = [&](std::size_t at) {
    return reinterpret_cast<std::atomic<std::uint32_t>*>(memory.data() + at);
  };
  for (const std::size_t at :
       {kCompatCommandRing, kCompatResponseRing, kCompatDoorbell, kCompatHeapControl}) {
    if (magic_at(at)->load(std::memory_order_acquire) == 0) return magic_at(at);
  }
  if (FindCompatStream(memory)) return nullptr;
  const auto begun = BegunCompatStream(memory);
  if (!begun) return nullptr;
  for (const std::size_t at : {begun->obs, begun->action}) {
    if (magic_at(at)->load(std::memory_order_acquire) == 0) return magic_at(at);
  }
  return nullptr;
}

enum RingNumber : std::size_t { kCommand, kResponse, kObs, kAction };

void AddSigns(CompatRingHeader& header, RingNumber ring, CompatLifeSigns& producer,
              CompatLifeSigns& consumer) {
  producer.beat[ring] = &header.producer_beat;
  producer.index[ring] = &header.head;
  consumer.beat[ring] = &header.consumer_beat;
  consumer.index[ring] = &header.tail;
}

}  // namespace

bool LayOutOrAdoptCompat(std::span<std::byte> memory, bool stream) {
  // Nothing is written before everything has been judged: another program may own the region.
  if (const auto problems = CompatProblemsBeforeLayout(memory); !problems.empty()) {
    throw Error(ExitCode::kConfig, "unusable region: " + problems.front() +
                                       "; another program's or a damaged region: remove it or "
                                       "choose another file");
  }
  std::byte* base = memory.data();
  bool adopted = LayOutOrKeep(base, kCompatHeapControl, [&] { LayOutHeap(base); });
  adopted |= LayOutOrKeep(base, kCompatDoorbell, [&] { LayOutDoorbell(base); });
  std::optional<CompatStreamPlace> place = FindCompatStream(memory);
  // A pair that a killed kernel has begun is finished by any: half a pair is no region.
  if (!place) place = BegunCompatStream(memory);
  if (!place && stream) place = FreeStreamPlace(memory);
  if (place) {
    if (LayOutOrAdoptRing(base, ObsPlaceOf(*place))) SkipConsumed(base, ObsPlaceOf(*place));
    adopted |= LayOutOrAdoptRing(base, ActionPlaceOf(*place));
  }
  if (LayOutOrAdoptRing(base, kCompatResponsePlace)) SkipConsumed(base, kCompatResponsePlace);
  return LayOutOrAdoptRing(base, kCompatCommandPlace) || adopted;
}

void AwaitCompatLayout(std::span<std::byte> memory, const CompatEndConfig& config,
                       std::int64_t timeout_ns) {
  constexpr std::int64_t kLookNs = 2 * kNanosPerMilli;
  const Deadline deadline(ClockOf(config), timeout_ns);
  if (memory.size() < kCompatRegionBytes) return;
  while (auto* magic = MissingMagic(memory)) {
    if (!CompatProblemsBeforeLayout(memory).empty()) return;
    const bool stopped = config.stop != nullptr && config.stop->load(std::memory_order_relaxed);
    if (stopped || deadline.Passed()) {
      // Half a pair of stream rings has a sentence of its own.
      const bool half = reinterpret_cast<std::byte*>(magic) - memory.data() >=
                        static_cast<std::ptrdiff_t>(kCompatHeapData);
      if (half && !stopped) return;
      throw Error(ExitCode::kTryAgain, "no kernel has laid out the region within " +
                                           std::to_string(timeout_ns / kNanosPerMilli) +
                                           " ms; start the kernel");
    }
    const std::int64_t nap_ns = std::min(kLookNs, deadline.LeftNs());
    if (config.sleeper != nullptr) {
      config.sleeper->Sleep(*magic, 0, nap_ns);
    } else {
      static_cast<void>(FutexWait(*magic, 0, nap_ns));
    }
  }
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
                                 : MappedFile::Open(path, kCompatRegionBytes, bytes));
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

CompatParts::CompatParts(std::span<std::byte> region, const Clock& ends_clock)
    : memory(region), clock(ends_clock) {
  std::string problems;
  for (const std::string& problem : CompatProblems(region)) {
    problems += (problems.empty() ? "" : "; ") + problem;
  }
  if (!problems.empty()) throw Error(ExitCode::kConfig, "unusable region: " + problems);
  std::byte* base = region.data();
  doorbell = reinterpret_cast<CompatDoorbellBlock*>(base + kCompatDoorbell);
  command = CompatCommandRing::Attach(base + kCompatCommandRing, kCompatCommandMagic,
                                      kCompatCommandEntries, clock);
  response = CompatResponseRing::Attach(base + kCompatResponseRing, kCompatResponseMagic,
                                        kCompatCommandEntries, clock);
  if (!command.valid() || !response.valid())
    throw Error(ExitCode::kConfig, "unusable region: its rings changed while they were checked");
  obs_bell = CompatBell(doorbell->obs_doorbell, doorbell->kernel_asleep);
  action_bell = CompatBell(doorbell->action_doorbell, doorbell->host_asleep);
  AddSigns(command.header(), kCommand, kernel_signs, host_signs);
  AddSigns(response.header(), kResponse, host_signs, kernel_signs);
  AttachStream();
}

bool CompatParts::AttachStream() {
  if (obs.valid() && action.valid()) return true;
  const std::optional<CompatStreamPlace> place = FindCompatStream(memory);
  if (!place) return false;
  obs = CompatObsRing::Attach(memory.data() + place->obs, kCompatStreamMagic, kCompatStreamEntries,
                              clock);
  action = CompatActionRing::Attach(memory.data() + place->action, kCompatStreamMagic,
                                    kCompatStreamEntries, clock);
  if (!obs.valid() || !action.valid()) {
    obs = {};
    action = {};
    return false;
  }
  AddSigns(obs.header(), kObs, host_signs, kernel_signs);
  AddSigns(action.header(), kAction, kernel_signs, host_signs);
  return true;
}

}  // namespace tetrion
