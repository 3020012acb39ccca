#include "lib/region_v2/compat_host.h"

#include <algorithm>

#include "lib/core/error.h"
#include "lib/region_v2/compat_checks.h"
#include "lib/region_v2/compat_host_impl.h"

namespace tetrion {
namespace {

constexpr std::uint32_t kPollsPerLook = 1024;  // between looks at clock and stop flag under load

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

// Waits for the kernel's magics. A magic that is there and wrong, or a header that is wrong behind
// its magic, does not get better by waiting: CompatParts says what is the matter.
std::span<std::byte> AwaitLayout(std::span<std::byte> memory, const CompatEndConfig& config,
                                 std::int64_t timeout_ns) {
  constexpr std::int64_t kLookNs = 2 * kNanosPerMilli;
  const Deadline deadline(ClockOf(config), timeout_ns);
  if (memory.size() < kCompatRegionBytes) return memory;
  while (auto* magic = MissingMagic(memory)) {
    if (!CompatProblemsBeforeLayout(memory).empty()) return memory;
    const bool stopped = config.stop != nullptr && config.stop->load(std::memory_order_relaxed);
    if (stopped || deadline.Passed()) {
      // Half a pair of stream rings has a sentence of its own.
      const bool half = reinterpret_cast<std::byte*>(magic) - memory.data() >=
                        static_cast<std::ptrdiff_t>(kCompatHeapData);
      if (half && !stopped) return memory;
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
  return memory;
}

}  // namespace

CompatHost::CompatHost(std::span<std::byte> memory, CompatEnv& env, const CompatEndConfig& config,
                       std::int64_t timeout_ns)
    : impl_(std::make_unique<Impl>(AwaitLayout(memory, config, timeout_ns), env, config)) {}
CompatHost::CompatHost(CompatHost&&) noexcept = default;
CompatHost::~CompatHost() = default;

void CompatHost::SetWeights(const std::array<float, 4>& weights) {
  impl_->new_weights = weights;
}

CompatResult CompatHost::Poll() {
  return impl_->Poll();
}

CompatResult CompatHost::Serve(std::int64_t timeout_ns) {
  Impl& impl = *impl_;
  const Deadline deadline(impl.clock, timeout_ns);
  for (std::uint32_t worked = 0;;) {
    const CompatResult result = impl.Poll();
    if (result == CompatResult::kIdle) {
      if (impl.waiter.Spin()) continue;
      const CompatResult rest = impl.waiter.Rest(deadline);
      if (rest == CompatResult::kTimeout) return CompatResult::kOk;
      if (rest != CompatResult::kOk) return rest;
      continue;
    }
    impl.waiter.Done();
    if (result != CompatResult::kOk) return result;
    if (++worked % kPollsPerLook == 0) {
      const auto* stop = impl.config.stop;
      if (stop != nullptr && stop->load(std::memory_order_relaxed)) return CompatResult::kStopped;
      if (deadline.Passed()) return CompatResult::kOk;
    }
  }
}

void CompatHost::Heartbeat() {
  impl_->waiter.Heartbeat();
}
bool CompatHost::kernel_seen() const {
  return impl_->waiter.PeerSigns() != impl_->kernel_signs_at_attach;
}
bool CompatHost::streaming() const {
  return impl_->streaming;
}
const std::string& CompatHost::problem() const {
  return impl_->problem;
}
const CompatStats& CompatHost::stats() const {
  return impl_->stats;
}

}  // namespace tetrion
