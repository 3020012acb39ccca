#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lib/core/clock.h"
#include "lib/region_v2/compat_host.h"
#include "lib/region_v2/compat_kernel.h"
#include "lib/region_v2/compat_region.h"
#include "lib/region_v2/compat_ring.h"

namespace tetrion {

// Memory for a region, exactly as large as it has to be, so that ASan sees a byte more.
class CompatBytes {
 public:
  explicit CompatBytes(std::size_t bytes = kCompatRegionBytes)
      : bytes_(bytes), memory_(static_cast<std::byte*>(std::aligned_alloc(4096, bytes))) {
    std::memset(memory_.get(), 0, bytes);
  }
  std::span<std::byte> span() const { return {memory_.get(), bytes_}; }
  template <typename T>
  T& at(std::size_t offset) const {
    return *reinterpret_cast<T*>(memory_.get() + offset);
  }
  CompatRingHeader& ring(std::size_t offset) const { return at<CompatRingHeader>(offset); }
  CompatDoorbellBlock& doorbell() const { return at<CompatDoorbellBlock>(kCompatDoorbell); }
  CompatHeapControl& heap() const { return at<CompatHeapControl>(kCompatHeapControl); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

// An environment anyone can compute: observation i of step n is 10 n + i + episode / 4, the reward
// is 1, and the episode ends after `length` steps.
class CountingEnv final : public CompatEnv {
 public:
  explicit CountingEnv(int length = 1 << 30, bool truncates = false)
      : length_(length), truncates_(truncates) {}
  static std::array<float, 4> Obs(int step, int episode) {
    std::array<float, 4> obs;
    for (std::size_t i = 0; i < obs.size(); ++i) {
      obs[i] = static_cast<float>(10 * step) + static_cast<float>(i) +
               static_cast<float>(episode) * 0.25F;
    }
    return obs;
  }
  CompatMetadata metadata() const override {
    return {.obs_dim = 4, .action_count = 2, .spec_hash = 0x1122334455667788};
  }
  std::array<float, 4> Reset() override {
    step_ = 0;
    return Obs(0, ++episode_);
  }
  CompatStep Step(std::uint16_t action) override {
    actions.push_back(action);
    const bool over = ++step_ >= length_;
    return {.obs = Obs(step_, episode_),
            .reward = 1.0F,
            .terminated = over && !truncates_,
            .truncated = over && truncates_};
  }

  std::vector<std::uint16_t> actions;

 private:
  const int length_;
  const bool truncates_;
  int step_ = 0;
  int episode_ = 0;
};

// Sleeping lets the time of a FakeClock pass and, if told, the other end work: both ends in one
// thread, with results that time cannot change.
class PumpSleeper final : public CompatSleeper {
 public:
  explicit PumpSleeper(FakeClock& clock) : clock_(clock) {}
  void Sleep(std::atomic<std::uint32_t>& word, std::uint32_t expected,
             std::int64_t timeout_ns) override {
    ++sleeps;
    longest_ns = std::max(longest_ns, timeout_ns);
    if (pump) pump();
    if (word.load() == expected) clock_.AdvanceNs(timeout_ns);
  }
  void Yield() override {}

  std::function<void()> pump;
  int sleeps = 0;
  std::int64_t longest_ns = 0;

 private:
  FakeClock& clock_;
};

// A kernel and a host over one region in one thread: whenever the kernel sleeps, the host polls.
struct CompatWorld {
  explicit CompatWorld(std::size_t bytes = kCompatRegionBytes) : memory(bytes) {
    config.wait.spins = 0;
    config.wait.yields = 0;
    config.clock = &clock;
    config.sleeper = &sleeper;
    sleeper.pump = [this] {
      if (host) host_result = host->Poll();
    };
  }
  void StartKernel() { kernel.emplace(memory.span(), config); }
  void StartHost(CompatEnv& env) { host.emplace(memory.span(), env, config, 0); }
  void Start(CompatEnv& env) {
    StartKernel();
    StartHost(env);
  }

  CompatBytes memory;
  FakeClock clock;
  PumpSleeper sleeper{clock};
  CompatEndConfig config;
  std::optional<CompatKernel> kernel;
  std::optional<CompatHost> host;
  CompatResult host_result = CompatResult::kIdle;
};

// A world whose streamed episode runs, and a hand in each of its rings.
struct Streaming : CompatWorld {
  explicit Streaming(int length = 1 << 30) : env(length) {
    Start(env);
    EXPECT_EQ(kernel->Reset(obs), CompatResult::kOk);
  }
  // Pushes an ACTION past the kernel.
  void Act(std::uint32_t seq, std::uint16_t action = 0) {
    auto ring = CompatActionRing::Attach(memory.span().data() + kCompatActionRing,
                                         kCompatStreamMagic, kCompatStreamEntries);
    EXPECT_EQ(ring.Push({.seq = seq, .action = action, .ack_seq = seq}),
              CompatRingResult::kWasEmpty);
  }
  // The newest response.
  CompatResponse LastResponse() const {
    const std::uint32_t head = memory.ring(kCompatResponseRing).head;
    return memory.at<CompatResponse>(kCompatResponseRing + 32 + 16 * ((head + 1023) % 1024));
  }

  CountingEnv env;
  CompatObs obs = {};
};

}  // namespace tetrion
