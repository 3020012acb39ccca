#include "tools/stream/cartpole_env.h"

#include <cstring>

#include "lib/core/align.h"
#include "lib/core/clock.h"
#include "lib/envs/cartpole/cartpole_rules.h"

namespace tetrion {
namespace {

constexpr int kLane = 0;
constexpr int kActive[] = {kLane};

RowSpec SpecOf(const VecEnv& env) {
  return {.record_bytes = env.spec().obs.record_bytes,
          .lanes = 1,
          .has_mask = env.spec().action.has_mask};
}

// FNV-1a over what makes the streams of two environments compatible.
std::uint64_t SpecHash(const EnvSpec& spec) {
  std::uint64_t hash = 0xCBF29CE484222325ULL;
  for (const char letter : spec.name + "/" + spec.obs.record + "/" +
                               std::to_string(spec.obs.record_bytes) + "/" +
                               std::to_string(spec.action.count)) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3ULL;
  }
  return hash;
}

}  // namespace

CartPoleCompatEnv::CartPoleCompatEnv(std::uint64_t seed, std::uint32_t max_steps)
    : max_steps_(max_steps),
      env_(MakeVecEnv({.name = "cartpole", .lanes = 1, .seed = seed})),
      layout_(SpecOf(*env_)),
      row_bytes_(layout_.row_bytes + kColumnAlignBytes) {
  const auto base = reinterpret_cast<std::uintptr_t>(row_bytes_.data());
  row_ = RowView(layout_, row_bytes_.data() + (AlignUp(base, kColumnAlignBytes) - base));
}

CompatMetadata CartPoleCompatEnv::metadata() const {
  return {.obs_dim = 4,
          .action_count = static_cast<std::uint32_t>(env_->spec().action.count),
          .spec_hash = SpecHash(env_->spec())};
}

std::array<float, 4> CartPoleCompatEnv::Observation() const {
  std::array<float, 4> observation;
  static_assert(sizeof observation == sizeof(CartPoleRecord));
  std::memcpy(observation.data(), row_.record, sizeof observation);
  return observation;
}

std::array<float, 4> CartPoleCompatEnv::Reset() {
  env_->Reset(kLane, {.id = next_token_++, .max_steps = max_steps_});
  running_ = true;
  episode_steps_ = 0;
  began_ns_ = MonotonicClock::Get().NowNs();
  constexpr std::int32_t kIgnored = 0;
  env_->Step(kActive, &kIgnored, row_);
  return Observation();
}

CompatStep CartPoleCompatEnv::Step(std::uint16_t action) {
  const std::int32_t chosen = action;
  env_->Step(kActive, &chosen, row_);
  const std::uint8_t flags = row_.flags[kLane];
  running_ = (flags & kIsLast) == 0;
  ++episode_steps_;
  if (!running_) {
    return_sum_ += env_->Episode(kLane).episode_return;
    ended_steps_ += episode_steps_;
    played_ns_ += MonotonicClock::Get().NowNs() - began_ns_;
  }
  return {.obs = Observation(),
          .reward = row_.reward[kLane],
          .terminated = (flags & kTerminated) != 0,
          .truncated = (flags & kTruncated) != 0};
}

double CartPoleCompatEnv::steps_per_s() const {
  if (played_ns_ == 0) return 0;
  return static_cast<double>(ended_steps_) * 1e9 / static_cast<double>(played_ns_);
}

}  // namespace tetrion
