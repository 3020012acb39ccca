#include "lib/envs/registry.h"

#include <algorithm>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/envs/cartpole/cartpole.h"
#include "lib/envs/catch/catch.h"
#include "lib/envs/tetris/tetris.h"
#include "lib/envs/tetris/tetris_record.h"

namespace tetrion {
namespace {

// One line an environment.
std::deque<EnvEntry> BuiltIn() {
  return {
      TetrisEntry(),
      TetrisPlacementEntry(),
      CartPoleEntry(),
      CatchEntry(),
  };
}

void Append(std::string& list, const std::string& name) {
  list += (list.empty() ? "" : ", ") + name;
}

// The first field that is missing, "" when none is.
std::string Missing(const ViewEntry& view) {
  if (view.name.empty()) return "name";
  if (view.record.name.empty()) return "record.name";
  if (view.record.bytes == 0) return "record.bytes";
  if (view.elements == nullptr) return "elements";
  if (view.is_float() && view.networks.empty()) return "networks, which read its floats";
  if (!view.is_float() && !view.networks.empty()) return "expand, for its networks";
  if (view.parts != nullptr && view.expand_bytes == nullptr) return "expand_bytes, for its parts";
  return "";
}

std::string Missing(const EnvEntry& entry) {
  if (entry.name.empty()) return "name";
  if (entry.python_name.empty()) return "python_name";
  for (const ViewEntry& view : entry.views) {
    const std::string field = Missing(view);
    if (!field.empty()) return "in its view '" + view.name + "' " + field;
  }
  if (entry.actions.empty()) return "actions";
  if (entry.max_steps == 0) return "max_steps";
  if (entry.picture.size == nullptr) return "picture.size";
  if (entry.picture.draw == nullptr) return "picture.draw";
  if (entry.picture.text == nullptr) return "picture.text";
  if (entry.make == nullptr) return "make";
  return "";
}

void CheckWhole(const EnvEntry& entry) {
  const std::string field = Missing(entry);
  TETRION_CHECK(field.empty(),
                ("the entry of environment '" + entry.name + "' lacks " + field).c_str());
  static_cast<void>(entry.NetworkView(""));
  static_cast<void>(entry.Observation(entry.default_obs));
  static_cast<void>(entry.ViewOfRecord(entry.picture.record));
}

void AddTo(std::deque<EnvEntry>& envs, EnvEntry entry) {
  CheckWhole(entry);
  for (const EnvEntry& known : envs) {
    TETRION_CHECK(known.name != entry.name,
                  ("two environments have the name '" + entry.name + "'").c_str());
  }
  envs.push_back(std::move(entry));
}

std::deque<EnvEntry>& List() {
  static std::deque<EnvEntry> envs = [] {
    std::deque<EnvEntry> checked, entries = BuiltIn();
    for (EnvEntry& entry : entries) AddTo(checked, std::move(entry));
    return checked;
  }();
  return envs;
}

EnvSpec SpecOf(const EnvEntry& entry, const EnvConfig& config) {
  if (config.lanes < 1) {
    throw Error(ExitCode::kUsage, "lanes must be at least 1, not " + std::to_string(config.lanes));
  }
  const bool has_queue = entry.Takes(kQueueSizeOption);
  if (has_queue && (config.queue_size < 0 || config.queue_size > kTetrisMaxQueue)) {
    throw Error(ExitCode::kUsage, "queue_size must be 0 to " + std::to_string(kTetrisMaxQueue) +
                                      ", not " + std::to_string(config.queue_size));
  }
  if (entry.Takes(kBoardRowsOption) &&
      (config.rows < kTetrisFewestRows || config.rows > kTetrisRows)) {
    throw Error(ExitCode::kUsage, "board_rows must be " + std::to_string(kTetrisFewestRows) +
                                      " to " + std::to_string(kTetrisRows) + ", not " +
                                      std::to_string(config.rows));
  }
  if (config.spawn_above && !entry.Takes(kSpawnAboveOption)) {
    throw Error(ExitCode::kUsage,
                "spawn_above: only pieces that are placed can appear above the field, and " +
                    entry.name + " places none: leave it out, or choose tetris-placement");
  }
  const ViewEntry& view = entry.NetworkView(config.view);
  const int queue_size = has_queue ? config.queue_size : 0;
  return {.name = entry.name,
          .obs = {.record = view.record.name,
                  .record_bytes = view.record.bytes,
                  .view = view.name,
                  .view_floats = view.elements(queue_size),
                  .action_floats = view.action_floats,
                  .board_columns = view.board_columns,
                  .queue_size = queue_size,
                  .expand = view.expand,
                  .check = view.record.check,
                  .network = view.networks.front()},
          .action = {.count = static_cast<std::int32_t>(entry.actions.size()),
                     .has_mask = entry.mask != nullptr},
          .has_lines = entry.has_lines};
}

}  // namespace

bool EnvEntry::Takes(const std::string& option) const {
  return std::find(options.begin(), options.end(), option) != options.end();
}

const ViewEntry& EnvEntry::NetworkView(const std::string& view) const {
  const std::string& wanted = view.empty() ? default_view : view;
  std::string known;
  for (const ViewEntry& entry : views) {
    if (!entry.is_float()) continue;
    if (entry.name == wanted) return entry;
    Append(known, entry.name);
  }
  throw Error(ExitCode::kUsage,
              "unknown view of " + name + " '" + wanted + "': choose one of " + known);
}

const ViewEntry& EnvEntry::Observation(const std::string& obs) const {
  std::string known;
  for (const ViewEntry& entry : views) {
    if (entry.observation() == obs) return entry;
    Append(known, entry.observation());
  }
  throw Error(ExitCode::kUsage, name + " has no observation '" + obs + "': choose one of " + known);
}

const std::string& EnvEntry::ViewOfRecord(const RecordKind& kind) const {
  if (NetworkView("").record.name == kind.name) return default_view;
  const auto made = std::find_if(views.begin(), views.end(), [&](const ViewEntry& view) {
    return view.is_float() && view.record.name == kind.name;
  });
  TETRION_CHECK(made != views.end(), "no network's view is made from this kind of record");
  return made->name;
}

bool EnvEntry::HasRecordOf(std::size_t bytes) const {
  return std::any_of(views.begin(), views.end(),
                     [&](const ViewEntry& view) { return view.record.bytes == bytes; });
}

void RegisterEnv(EnvEntry entry) {
  AddTo(List(), std::move(entry));
}

const std::deque<EnvEntry>& Envs() {
  return List();
}

std::string EnvNames() {
  std::string names;
  for (const EnvEntry& entry : Envs()) Append(names, entry.name);
  return names;
}

const EnvEntry& EnvOf(const std::string& name) {
  for (const EnvEntry& entry : Envs()) {
    if (entry.name == name) return entry;
  }
  throw Error(ExitCode::kUsage, "unknown environment '" + name + "': choose one of " + EnvNames());
}

EnvSpec MakeEnvSpec(const EnvConfig& config) {
  return SpecOf(EnvOf(config.name), config);
}

std::unique_ptr<VecEnv> MakeVecEnv(const EnvConfig& config) {
  const EnvEntry& entry = EnvOf(config.name);
  return entry.make(SpecOf(entry, config), config);
}

}  // namespace tetrion
