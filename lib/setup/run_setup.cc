#include "lib/setup/run_setup.h"

#include <algorithm>
#include <map>
#include <string>

#include "lib/core/error.h"
#include "lib/envs/registry.h"
#include "lib/envs/tetris/tetris_record.h"
#include "lib/setup/preset_table.h"
#include "lib/wire/messages.h"

namespace tetrion {
namespace {

constexpr const char* kAuto = "auto";

bool Reads(const std::string& network, const ViewEntry& view) {
  return std::find(view.networks.begin(), view.networks.end(), network) != view.networks.end();
}

// As EnvEntry::NetworkView takes it.
std::string ViewOf(const RunConfig& run) {
  return run.view == kAuto ? "" : run.view;
}

void CheckNetwork(const RunConfig& config, const EnvEntry& env) {
  const ViewEntry& given = env.NetworkView(config.view);
  if (Reads(config.network, given)) return;
  const auto other = std::find_if(env.views.begin(), env.views.end(), [&](const ViewEntry& view) {
    return Reads(config.network, view);
  });
  throw Error(ExitCode::kUsage, "network " + config.network + " does not read view " + config.view +
                                    " of " + config.env + ": choose --network " +
                                    given.networks.front() +
                                    (other == env.views.end() ? "" : " or --view " + other->name));
}

void CheckPrecision(const RunConfig& config) {
  if (config.precision == "f32" || HasScorer(config)) return;
  throw Error(ExitCode::kUsage, "run setting precision = " + config.precision +
                                    " is for V-trace with network scorer or columns, and this "
                                    "run has algo " +
                                    config.algo + " and network " + config.network +
                                    ": leave it out, or give --precision f32");
}

// A value that only another environment would mind is a mistake of the user's, who believes that it
// counts.
void CheckEnvSettings(RunConfig config) {
  const EnvEntry& env = EnvOf(config.env);
  RunConfig usual;
  const std::vector<SettingField> fields = FieldsOf(config), defaults = FieldsOf(usual);
  for (const char* option : {kQueueSizeOption, kIidPiecesOption, kBoardRowsOption,
                             kSpawnAboveOption, kRewardOption, kIllegalOption}) {
    const std::string value = FindField(fields, option, config.algo).value();
    if (env.Takes(option) || value == FindField(defaults, option, config.algo).value()) continue;
    std::string takers;
    for (const EnvEntry& other : Envs()) {
      if (other.Takes(option)) takers += (takers.empty() ? "" : " or ") + other.name;
    }
    throw Error(ExitCode::kUsage,
                std::string("run setting ") + option + " = " + value + ": environment " + env.name +
                    " has no use for it: leave it out, or choose --env " + takers);
  }
}

// Settings of a network that the run does not have: the user who gave them believes that they
// count.
void CheckNetworkSettings(const std::vector<Setting>& given, const RunConfig& config) {
  RunConfig usual;
  const std::vector<SettingField> defaults = FieldsOf(usual);
  const bool dreams = config.algo == "dreamer";
  for (const Setting& setting : given) {
    const bool unused = (setting.key == "network" && dreams) ||
                        (setting.key == "scorer_units" && !HasScorer(config));
    if (!unused || setting.value == FindField(defaults, setting.key, config.algo).value()) continue;
    throw Error(ExitCode::kUsage,
                "run setting " + setting.key + " = " + setting.value + ": " +
                    (dreams ? "DreamerV3's networks follow from size and view"
                            : "network " + config.network + " has no use for it") +
                    ": leave it out");
  }
}

}  // namespace

static_assert(kMostQueuePieces == kTetrisMaxQueue && kFewestBoardRows == kTetrisFewestRows &&
                  kMostBoardRows == kTetrisRows,
              "lib/run may not include the rules of Tetris");
static_assert(kMaxWorkersOfRun == wire::kMaxRings, "a run's rings fit one message");

EnvConfig EnvConfigOf(const RunConfig& run) {
  return {.name = run.env,
          .view = ViewOf(run),
          .lanes = run.lanes,
          .seed = run.seed,
          .queue_size = run.queue_size,
          .iid_pieces = run.iid_pieces,
          .rows = run.board_rows,
          .spawn_above = run.spawn_above,
          .reward = TetrisRewardOf(run.reward),
          .illegal_is_noop = run.illegal == "noop"};
}

EnvSpec EnvSpecOf(const RunConfig& run) {
  return MakeEnvSpec(EnvConfigOf(run));
}

RowSpec RowSpecOf(const RunConfig& run) {
  const EnvSpec spec = EnvSpecOf(run);
  return {.record_bytes = spec.obs.record_bytes,
          .lanes = static_cast<std::uint32_t>(run.lanes),
          .has_mask = spec.action.has_mask};
}

void AddRunSettings(ServiceOptions& parser, std::vector<Setting>* given) {
  std::string limits;
  for (const EnvEntry& env : Envs()) {
    limits += (limits.empty() ? " (" : ", ") + env.name + ' ' + std::to_string(env.max_steps);
  }
  parser.AddRun(given, {{"env", ": " + EnvNames()}, {"max_steps", limits + ")"}},
                PresetsMarkdown());
}

void AddShmDir(ServiceOptions& parser, std::string* dir, const std::string& if_empty) {
  parser.Add("shm-dir", dir, "folder of the shared regions; empty: " + if_empty);
}

void Resolve(RunConfig& config) {
  const EnvEntry& env = EnvOf(config.env);
  if (config.view == kAuto) config.view = env.default_view;
  if (config.max_steps == 0) config.max_steps = env.max_steps;
  if (config.network == kAuto) config.network = env.NetworkView(config.view).networks.front();
  CheckNetwork(config, env);
  CheckPrecision(config);
  ResolveShapes(config);
}

bool HasScorer(const RunConfig& run) {
  return run.algo != "dreamer" && (run.network == "scorer" || run.network == "columns");
}

RunConfig MakeRunConfig(const std::vector<Setting>& given) {
  RunConfig config;
  for (const Setting& setting : given) {
    if (setting.key == "env" || setting.key == "algo" || setting.key == "view") {
      Apply(setting, config);
    }
  }
  const EnvEntry& env = EnvOf(config.env);
  for (const auto* preset : {&env.preset, &env.NetworkView(ViewOf(config)).preset}) {
    for (const auto& [key, value] : *preset) {
      const std::string algorithm = AlgorithmOf(key);
      if (algorithm.empty() || algorithm == config.algo) Apply({NameOf(key), value}, config);
    }
  }
  ApplyAll(given, config);
  CheckEnvSettings(config);
  Resolve(config);
  CheckNetworkSettings(given, config);
  return config;
}

std::vector<SettingChange> ChangeOnResume(const std::vector<Setting>& given, RunConfig& config) {
  const std::vector<SettingChange> changes = ApplyOnResume(given, config);
  Resolve(config);
  return changes;
}

}  // namespace tetrion
