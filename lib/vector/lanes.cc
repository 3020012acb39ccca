#include "lib/vector/lanes.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lib/core/check.h"
#include "lib/envs/lane_runs.h"

namespace tetrion {
namespace {

EnvConfig WithLanes(EnvConfig config, int lanes) {
  config.lanes = lanes;
  return config;
}

// Loops over columns [n] that share no memory.
void EndColumns(std::size_t n, const std::uint8_t* __restrict flags, std::uint8_t* __restrict last,
                std::uint8_t* __restrict terminated, std::uint8_t* __restrict truncated) {
  for (std::size_t i = 0; i < n; ++i) {
    last[i] = (flags[i] & kIsLast) != 0 ? 1 : 0;
    terminated[i] = (flags[i] & kTerminated) != 0 ? 1 : 0;
    truncated[i] = (flags[i] & kTruncated) != 0 ? 1 : 0;
  }
}
void ClearedColumns(std::size_t n, const std::int32_t* __restrict lines,
                    std::int32_t* __restrict cleared) {
  // Without a sign: a state from elsewhere may say any number of lines.
  for (std::size_t i = 0; i < n; ++i) {
    cleared[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(lines[i]) -
                                           static_cast<std::uint32_t>(cleared[i]));
  }
}

}  // namespace

Lanes::Lanes(const PyEnvConfig& config, int count)
    : config_(config),
      env_config_(EnvConfigOf(config)),
      spec_(MakeEnvSpec(env_config_)),
      encoder_(MakeObsEncoder(config, spec_)),
      max_steps_(config.max_steps > 0 ? config.max_steps : EnvOf(config.env).max_steps),
      env_(MakeVecEnv(WithLanes(env_config_, count))),
      lane_(static_cast<std::size_t>(count)),
      begins_(static_cast<std::size_t>(count), 1),
      record_(static_cast<std::size_t>(count) * spec_.obs.record_bytes),
      action_(static_cast<std::size_t>(count)),
      episode_id_(static_cast<std::size_t>(count)),
      mask_(static_cast<std::size_t>(count)),
      flags_(static_cast<std::size_t>(count)),
      cont_(static_cast<std::size_t>(count)),
      columns_(count, encoder_.bytes(), spec_.action.count, spec_.action.has_mask) {
  for (int env = 0; env < count; ++env) columns_.env_id[static_cast<std::size_t>(env)] = env;
}

void Lanes::Seed(int env, std::uint64_t seed) {
  lane_[static_cast<std::size_t>(env)] = {.seed = seed, .episode = 0, .is_seeded = true};
  Restart(env);
  env_->Seed(env, seed);
}

RowView Lanes::Row() {
  RowView row;
  row.record = record_.data();
  row.action = action_.data();
  row.mask = spec_.action.has_mask ? mask_.data() : nullptr;
  row.reward = columns_.reward.data();
  row.flags = flags_.data();
  row.cont = cont_.data();
  row.episode_id = episode_id_.data();
  return row;
}

void Lanes::Play(std::span<const int> envs) {
  ForEachRun(envs, envs.size(), [this](int first, std::size_t n) { BeginEpisodes(first, n); });
  env_->Step(envs, action_.data(), Row());
  Show(envs);
  ForEachRun(envs, envs.size(), [this](int first, std::size_t n) {
    const auto at = static_cast<std::size_t>(first);
    EndColumns(n, flags_.data() + at, begins_.data() + at, columns_.terminated.data() + at,
               columns_.truncated.data() + at);
    ClearedColumns(n, columns_.lines.data() + at, columns_.lines_cleared.data() + at);
    // Neighbours are encoded together.
    encoder_.Encode(record(first), static_cast<std::int64_t>(n),
                    columns_.obs.data() + at * columns_.obs_bytes);
  });
}

void Lanes::BeginEpisodes(int first, std::size_t n) {
  const auto at = static_cast<std::size_t>(first);
  // Holds the lines before this step until ClearedColumns subtracts them.
  std::copy_n(columns_.lines.data() + at, n, columns_.lines_cleared.data() + at);
  const std::uint8_t* const begins = begins_.data() + at;
  // Looked for in many at once: few begin.
  for (const void* next = std::memchr(begins, 1, n); next != nullptr;) {
    const auto i = static_cast<std::size_t>(static_cast<const std::uint8_t*>(next) - begins);
    columns_.lines_cleared[at + i] = 0;
    BeginEpisode(first + static_cast<int>(i));
    next = std::memchr(begins + i + 1, 1, n - i - 1);
  }
}

void Lanes::BeginEpisode(int env) {
  Lane& lane = lane_[static_cast<std::size_t>(env)];
  TETRION_CHECK(lane.is_seeded, "an environment is seeded before it plays");
  env_->Reset(env, {.id = lane.episode, .attempt = 0, .max_steps = max_steps_});
  lane.episode += 1;
}

void Lanes::Show(std::span<const int> envs) {
  env_->Episodes(envs, {columns_.episode_return.data(), columns_.episode_length.data(),
                        columns_.lines.data()});
  if (columns_.mask_bytes == 0) return;
  for (const int env : envs) {
    const auto at = static_cast<std::size_t>(env);
    std::uint8_t* mask = columns_.action_mask.data() + at * columns_.mask_bytes;
    for (std::size_t a = 0; a < columns_.mask_bytes; ++a) mask[a] = mask_[at] >> a & 1;
  }
}

std::vector<std::byte> Lanes::Save(int env) const {
  const auto at = static_cast<std::size_t>(env);
  const Lane& lane = lane_[at];
  const std::vector<std::byte> game = env_->Save(env);
  if (game.empty()) return {};
  const SavedHead head = {.version = kSavedVersion,
                          .lines_cleared = columns_.lines_cleared[at],
                          .seed = lane.seed,
                          .episode = lane.episode,
                          .reward = columns_.reward[at],
                          .begins = begins_[at],
                          .terminated = columns_.terminated[at],
                          .truncated = columns_.truncated[at],
                          .reserved = 0};
  std::vector<std::byte> bytes(sizeof(head) + game.size());
  std::memcpy(bytes.data(), &head, sizeof(head));
  std::memcpy(bytes.data() + sizeof(head), game.data(), game.size());
  return bytes;
}

std::optional<Lanes::Saved> Lanes::Opened(std::span<const std::byte> saved) const {
  SavedHead head;
  if (saved.size() < sizeof(head)) return {};
  std::memcpy(&head, saved.data(), sizeof(head));
  if (head.version != kSavedVersion || (head.begins | head.terminated | head.truncated) > 1 ||
      !std::isfinite(head.reward)) {
    return {};
  }
  EnvConfig config = env_config_;
  config.seed = head.seed;
  const std::unique_ptr<VecEnv> env = MakeVecEnv(config);
  // Tried on a lane and a row of its own: the environment to be replaced still has its.
  std::vector<std::byte> record(spec_.obs.record_bytes);
  std::uint64_t mask = 0;
  std::int32_t episode_id = 0;
  std::uint8_t flags = 0;
  RowView row;
  row.record = record.data();
  row.mask = spec_.action.has_mask ? &mask : nullptr;
  row.episode_id = &episode_id;
  row.flags = &flags;
  const std::span<const std::byte> game = saved.subspan(sizeof(head));
  if (!env->Load(0, game, row) || env->token(0).max_steps != max_steps_) return {};
  if (static_cast<std::uint32_t>(head.lines_cleared) > env->Episode(0).lines) return {};
  if ((flags & kIsLast) != 0 && head.begins == 0) return {};  // would step past the episode's end
  return Saved{head, game};
}

void Lanes::Put(int env, const Saved& saved) {
  const auto at = static_cast<std::size_t>(env);
  const SavedHead& head = saved.head;
  Seed(env, head.seed);
  const bool loaded = env_->Load(env, saved.game, Row());
  TETRION_CHECK(loaded, "a state that was opened can be loaded");
  lane_[at].episode = head.episode;
  begins_[at] = head.begins;
  columns_.reward[at] = head.reward;
  columns_.terminated[at] = head.terminated;
  columns_.truncated[at] = head.truncated;
  columns_.lines_cleared[at] = head.lines_cleared;
  Show({&env, 1});
  encoder_.Encode(record(env), 1, columns_.obs.data() + at * columns_.obs_bytes);
}

}  // namespace tetrion
