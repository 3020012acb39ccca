#include "lib/vector/lanes.h"

#include <cstring>

#include "lib/core/check.h"

namespace tetrion {
namespace {

EnvConfig WithLanes(EnvConfig config, int lanes) {
  config.lanes = lanes;
  return config;
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
  lane_[static_cast<std::size_t>(env)] = {
      .seed = seed, .episode = 0, .is_seeded = true, .begins = true};
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
  // Where the columns are, once: bytes that are written might be these pointers for all the
  // compiler knows.
  Lane* const lane = lane_.data();
  const std::uint8_t* const flags = flags_.data();
  std::uint8_t* const terminated = columns_.terminated.data();
  std::uint8_t* const truncated = columns_.truncated.data();
  const std::int32_t* const lines = columns_.lines.data();
  std::int32_t* const lines_cleared = columns_.lines_cleared.data();
  for (const int env : envs) {
    lines_cleared[env] = lane[env].begins ? 0 : lines[env];  // those before, for now
    if (lane[env].begins) Begin(env);
  }
  env_->Step(envs, action_.data(), Row());
  for (const int env : envs) {
    lane[env].begins = (flags[env] & kIsLast) != 0;
    terminated[env] = (flags[env] & kTerminated) != 0 ? 1 : 0;
    truncated[env] = (flags[env] & kTruncated) != 0 ? 1 : 0;
  }
  Show(envs);
  for (const int env : envs) {
    // Without a sign: a state from elsewhere may say any number of lines.
    lines_cleared[env] = static_cast<std::int32_t>(static_cast<std::uint32_t>(lines[env]) -
                                                   static_cast<std::uint32_t>(lines_cleared[env]));
  }
  for (std::size_t begin = 0; begin < envs.size();) {
    // Neighbours are encoded together.
    std::size_t end = begin + 1;
    while (end < envs.size() && envs[end] == envs[end - 1] + 1) ++end;
    const auto first = static_cast<std::size_t>(envs[begin]);
    encoder_.Encode(record(envs[begin]), static_cast<std::int64_t>(end - begin),
                    columns_.obs.data() + first * columns_.obs_bytes);
    begin = end;
  }
}

void Lanes::Begin(int env) {
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
                          .begins = lane.begins ? std::uint8_t{1} : std::uint8_t{0},
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
  if (head.version != kSavedVersion || (head.begins | head.terminated | head.truncated) > 1) {
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
  lane_[at].begins = head.begins != 0;
  columns_.reward[at] = head.reward;
  columns_.terminated[at] = head.terminated;
  columns_.truncated[at] = head.truncated;
  columns_.lines_cleared[at] = head.lines_cleared;
  Show({&env, 1});
  encoder_.Encode(record(env), 1, columns_.obs.data() + at * columns_.obs_bytes);
}

}  // namespace tetrion
