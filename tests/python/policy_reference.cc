// Writes run folders whose policies the numpy package must agree with: policy_reference FOLDER.
// For every network, FOLDER/<case> is a run (config.toml, checkpoints/) with parameters drawn at
// random, and beside them records.u8 [n, bytes], logits.f32 [n, A], values.f32 [n] and
// actions.i32 [n], the greedy ones, as C++ computes them.

#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "lib/checkpoint/checkpoint_store.h"
#include "lib/core/align.h"
#include "lib/core/philox.h"
#include "lib/envs/vec_env.h"
#include "lib/frame/row_layout.h"
#include "lib/nn/categorical.h"
#include "lib/nn/network.h"
#include "lib/run/run_config.h"
#include "lib/run/run_folder.h"
#include "lib/setup/run_setup.h"

namespace tetrion {
namespace {

constexpr int kStates = 64;
constexpr int kPlayedSteps = 25;  // before a state is taken, so that fields are not empty

struct Case {
  const char* name;
  const char* env;
  const char* view;
  const char* network;
};
constexpr Case kCases[] = {{"scorer", "tetris-placement", "auto", "scorer"},
                           {"scorer-dt", "tetris-placement", "afterstates-dt", "scorer"},
                           {"scorer-drops", "tetris", "drops", "auto"},
                           {"columns", "tetris-placement", "afterstates-boards", "auto"},
                           {"mlp-vector", "cartpole", "auto", "mlp"},
                           {"mlp-planes", "tetris", "auto", "auto"},
                           {"mlp-placement", "tetris-placement", "planes", "mlp"},
                           {"conv", "tetris", "planes", "conv"}};

// States of different episodes, kPlayedSteps random actions into each, as the last row left them.
struct States {
  explicit States(const RunConfig& run) : config(EnvConfigOf(run)) {
    config.lanes = kStates;
    const auto env = MakeVecEnv(config);
    const RowSpec spec{.record_bytes = env->spec().obs.record_bytes,
                       .lanes = kStates,
                       .has_mask = env->spec().action.has_mask};
    const RowLayout layout(spec);
    bytes.resize(layout.row_bytes + kColumnAlignBytes);
    void* base = bytes.data();
    std::size_t space = bytes.size();
    row = RowView(layout, static_cast<std::byte*>(
                              std::align(kColumnAlignBytes, layout.row_bytes, base, space)));
    std::vector<int> lanes(kStates);
    std::vector<std::int32_t> actions(kStates);
    std::uint64_t token = 0;
    for (int lane = 0; lane < kStates; ++lane) {
      lanes[static_cast<std::size_t>(lane)] = lane;
      env->Reset(lane, {.id = token++, .max_steps = 1000});
    }
    for (int step = 0; step <= kPlayedSteps; ++step) {
      env->Step(lanes, actions.data(), row);
      for (std::size_t lane = 0; lane < kStates; ++lane) {
        if ((row.flags[lane] & kIsLast) != 0) {
          env->Reset(static_cast<int>(lane), {.id = token++, .max_steps = 1000});
        }
        actions[lane] = RandomAction(env->spec().action, lane, static_cast<std::uint32_t>(step));
      }
    }
  }

  std::int32_t RandomAction(const ActionSpec& action, std::size_t lane, std::uint32_t step) const {
    const PhiloxBlock draw = PhiloxDraw(9, lane, step, PhiloxPurpose::kActions);
    for (std::uint32_t i = 0;; ++i) {
      const auto count = static_cast<std::uint32_t>(action.count);
      const std::uint32_t choice = (BoundedDraw(draw.word[0], count) + i) % count;
      if (!action.has_mask || (row.mask[lane] >> choice & 1) != 0) {
        return static_cast<std::int32_t>(choice);
      }
    }
  }

  EnvConfig config;
  std::vector<std::byte> bytes;
  RowView row;
};

template <typename T>
void Write(const std::string& path, std::span<const T> values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size_bytes()));
}

TrainerState StateOf(const Network& network) {
  TrainerState state;
  for (const ParameterInfo& info : network.layout()) {
    const std::span<const float> piece = network.parameters().subspan(info.offset, info.size);
    state.tensors.push_back({"policy." + info.name, info.shape, {piece.begin(), piece.end()}});
  }
  return state;
}

void WriteCase(const std::string& folder, const Case& c) {
  RunConfig config;
  config.env = c.env;
  config.view = c.view;
  config.network = c.network;
  const RunFolder run = RunFolder::Create(folder, c.name);
  run.WriteConfig(config);
  const EnvSpec env = EnvSpecOf(config);
  const auto network = MakeNetwork({.name = c.network, .seed = 3, .max_states = kStates}, env);
  std::uint64_t number = 0;
  for (float& parameter : network->parameters()) {
    // Away from the tiny initial policy head and from biases of zero.
    const PhiloxBlock draw = PhiloxDraw(77, number++, 0, PhiloxPurpose::kSampler);
    parameter += static_cast<float>(UnitDraw(draw.word[0]) * 0.1 - 0.05);
  }
  CheckpointStore(run.checkpoints(), 2)
      .Save(StateOf(*network), {.config_hash = RunConfigHash(config),
                                .run = c.name,
                                .env = c.env,
                                .network = network->name(),
                                .updates = 10,
                                .policy_version = 11,
                                .env_steps = 1200,
                                .mean_return = 1.5});
  const States states(config);
  const auto actions = static_cast<std::size_t>(env.action.count);
  std::vector<float> view(kStates * static_cast<std::size_t>(env.obs.view_floats));
  std::vector<float> logits(kStates * actions), values(kStates);
  env.obs.expand(states.row.record, kStates, env.obs.queue_size, view.data());
  network->Infer(view.data(), states.row.mask, kStates, logits.data(), values.data());
  std::vector<std::int32_t> greedy;
  for (std::size_t i = 0; i < kStates; ++i) {
    greedy.push_back(MostProbable(logits.data() + i * actions, env.action.count));
  }
  Write<std::byte>(run.path() + "/records.u8",
                   {states.row.record, std::size_t{kStates} * env.obs.record_bytes});
  Write<float>(run.path() + "/logits.f32", logits);
  Write<float>(run.path() + "/values.f32", values);
  Write<std::int32_t>(run.path() + "/actions.i32", greedy);
}

}  // namespace
}  // namespace tetrion

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  for (const tetrion::Case& c : tetrion::kCases) tetrion::WriteCase(argv[1], c);
  return 0;
}
