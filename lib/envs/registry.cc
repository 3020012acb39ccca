#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/envs/cartpole_rules.h"
#include "lib/envs/colour_record.h"
#include "lib/envs/games.h"
#include "lib/envs/gym_views.h"
#include "lib/envs/tetris_record.h"
#include "lib/envs/tetris_rules.h"
#include "lib/envs/vec_env.h"
#include "lib/envs/views.h"

namespace tetrion {
namespace {

// A kind of record.
struct RecordEntry {
  const char* name;
  std::uint32_t bytes;
  CheckRecordsFn check;  // null: views of any bytes are finite
};
constexpr RecordEntry kCartPole = {"cartpole", sizeof(CartPoleRecord), CheckCartPoleRecords};
constexpr RecordEntry kCompact = {"compact", sizeof(TetrisRecord), nullptr};
constexpr RecordEntry kColour = {"colour", sizeof(ColourRecord), nullptr};

// A view and the records it is made from.
struct ViewEntry {
  const char* name;
  RecordEntry record;
  std::int64_t (*floats)(int queue_size);
  ExpandFn expand;
};

constexpr ViewEntry kVector = {"vector", kCartPole, [](int) { return std::int64_t{4}; },
                               ExpandVector};
constexpr ViewEntry kPlanes = {"planes", kCompact, PlanesLayout::Floats, ExpandPlanes};
constexpr ViewEntry kAfterstates = {"afterstates", kCompact, AfterstatesLayout::Floats,
                                    ExpandAfterstates};
constexpr ViewEntry kFlat = {"flat", kColour, FlatLayout::Floats, ExpandFlat};
constexpr std::array kCartPoleViews = {kVector};
constexpr std::array kTetrisViews = {kPlanes, kFlat};
constexpr std::array kPlacementViews = {kAfterstates, kPlanes, kFlat};

struct EnvEntry {
  const char* name;
  std::span<const ViewEntry> views;  // the first is the default
  ActionSpec action;
  bool has_queue_and_lines;
  std::unique_ptr<VecEnv> (*make)(EnvSpec spec, const EnvConfig& config);
};

// One line an environment.
const EnvEntry kEnvs[] = {
    {"cartpole", kCartPoleViews, {kCartPoleActions, false}, false, MakeCartPole},
    {"tetris", kTetrisViews, {kTetrisActions, false}, true, MakeTetris},
    {"tetris-placement", kPlacementViews, {kPlacementActions, true}, true, MakeTetrisPlacement},
};

// The entry called `name`; Error(kUsage) with the names there are.
template <typename Entries>
const auto& Find(const Entries& entries, const std::string& name, const std::string& kind) {
  std::string known;
  for (const auto& entry : entries) {
    if (entry.name == name) return entry;
    known += std::string(known.empty() ? "" : ", ") + entry.name;
  }
  throw Error(ExitCode::kUsage, "unknown " + kind + " '" + name + "': choose one of " + known);
}

EnvSpec SpecOf(const EnvEntry& entry, const EnvConfig& config) {
  if (config.lanes < 1) {
    throw Error(ExitCode::kUsage, "lanes must be at least 1, not " + std::to_string(config.lanes));
  }
  if (entry.has_queue_and_lines && (config.queue_size < 1 || config.queue_size > kTetrisMaxQueue)) {
    throw Error(ExitCode::kUsage,
                "queue_size must be 1 to 7, not " + std::to_string(config.queue_size));
  }
  const ViewEntry& view =
      config.view.empty() ? entry.views.front()
                          : Find(entry.views, config.view, "view of " + std::string(entry.name));
  const int queue_size = entry.has_queue_and_lines ? config.queue_size : 0;
  return {.name = entry.name,
          .obs = {.record = view.record.name,
                  .record_bytes = view.record.bytes,
                  .view = view.name,
                  .view_floats = view.floats(queue_size),
                  .queue_size = queue_size,
                  .expand = view.expand,
                  .check = view.record.check},
          .action = entry.action,
          .has_lines = entry.has_queue_and_lines};
}

}  // namespace

EnvSpec MakeEnvSpec(const EnvConfig& config) {
  return SpecOf(Find(kEnvs, config.name, "environment"), config);
}

std::unique_ptr<VecEnv> MakeVecEnv(const EnvConfig& config) {
  const EnvEntry& entry = Find(kEnvs, config.name, "environment");
  return entry.make(SpecOf(entry, config), config);
}

}  // namespace tetrion
