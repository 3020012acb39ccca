#include "lib/envs/cuda/device_game.h"

#include <algorithm>
#include <string>
#include <utility>

#include "lib/core/error.h"
#include "lib/cuda/launch.h"
#include "lib/envs/cartpole/cartpole.h"
#include "lib/envs/cuda/games.cuh"
#include "lib/envs/cuda/show_kernels.cuh"
#include "lib/envs/cuda/step_kernels.cuh"
#include "lib/envs/tetris/tetris.h"
#include "lib/envs/views/packed2.h"
#include "lib/envs/views/views.h"

namespace tetrion {
namespace {

using cuda::DeviceBuffer;
using cuda::DeviceSpan;

// [lanes] values for each game; contents undefined until its lane begins.
template <typename T>
struct LaneArray {
  LaneArray(const cuda::Device& device, int lanes)
      : buffer(device, static_cast<std::size_t>(lanes) * sizeof(T), "states of lanes"),
        span(buffer.data<T>(), static_cast<std::size_t>(lanes)) {}
  DeviceBuffer buffer;
  DeviceSpan<T> span;
};

class CartPoleGame final : public DeviceGame {
 public:
  CartPoleGame(const cuda::Device& device, const EnvConfig& config)
      : state_(device, config.lanes), game_{config.seed, state_.span} {}

  void Step(const LaneSpans& lanes, const RowSlots& slots, StepKind kind, unsigned blocks,
            unsigned block_threads, cuda::Stream& stream) override {
    Launch(stream, StepLanes<CartPoleLanes>, blocks, block_threads, 0, lanes, slots, game_, kind,
           true);
  }

 private:
  const LaneArray<CartPoleState> state_;
  const CartPoleLanes game_;
};

// `Lanes` is TetrisLanes or PlacementLanes.
template <typename Lanes>
class TetrisGame final : public DeviceGame {
 public:
  TetrisGame(const cuda::Device& device, const EnvConfig& config, DeviceRecord record)
      : record_(record), states_(device, config.lanes), draws_(device, config.lanes) {
    game_.seed = config.seed;
    game_.setup = {config.queue_size, config.rows, config.spawn_above, config.reward};
    game_.iid_pieces = config.iid_pieces;
    game_.record = states_.span;
    game_.draws = draws_.span;
    if constexpr (Lanes::kActions == kPlacementActions) {
      game_.illegal_is_noop = config.illegal_is_noop;
    }
  }

  void Step(const LaneSpans& lanes, const RowSlots& slots, StepKind kind, unsigned blocks,
            unsigned block_threads, cuda::Stream& stream) override {
    Launch(stream, StepLanes<Lanes>, blocks, block_threads, 0, lanes, slots, game_, kind,
           record_ == DeviceRecord::kState);
    if (record_ == DeviceRecord::kPlanes) {
      Launch(stream, DrawPlanes, cuda::BlocksFor(slots.lanes, kPlanesLanes), kPlanesThreads, 0,
             lanes, states(), slots, game_.setup.queue_size);
    } else if (record_ == DeviceRecord::kPacked2) {
      Launch(stream, DrawPictures, cuda::BlocksFor(slots.lanes, kPictureLanes), kPictureThreads, 0,
             lanes, states(), slots);
    }
  }

 private:
  DeviceSpan<const TetrisRecord> states() const {
    return DeviceSpan<const TetrisRecord>(states_.span.data(), states_.span.size());
  }

  const DeviceRecord record_;
  const LaneArray<TetrisRecord> states_;
  const LaneArray<PieceDraws> draws_;
  Lanes game_;
};

using MakeGameFn = std::unique_ptr<DeviceGame> (*)(const cuda::Device&, const EnvConfig&,
                                                   DeviceRecord);

template <typename Lanes>
std::unique_ptr<DeviceGame> MakeTetris(const cuda::Device& device, const EnvConfig& config,
                                       DeviceRecord record) {
  return std::make_unique<TetrisGame<Lanes>>(device, config, record);
}

std::unique_ptr<DeviceGame> MakeCartPole(const cuda::Device& device, const EnvConfig& config,
                                         DeviceRecord) {
  return std::make_unique<CartPoleGame>(device, config);
}

// A line a game.
struct GameEntry {
  EnvEntry (*env)();
  MakeGameFn make;
  std::size_t state_bytes;  // of a record that is the game's state
  bool has_pictures;
};
constexpr GameEntry kGames[] = {
    {TetrisEntry, MakeTetris<TetrisLanes>, sizeof(TetrisRecord), true},
    {TetrisPlacementEntry, MakeTetris<PlacementLanes>, sizeof(TetrisRecord), true},
    {CartPoleEntry, MakeCartPole, sizeof(CartPoleRecord), false},
};

const GameEntry& GameOf(const std::string& env) {
  const auto* game = std::find_if(std::begin(kGames), std::end(kGames),
                                  [&](const GameEntry& entry) { return entry.env().name == env; });
  if (game != std::end(kGames)) return *game;
  std::string names;
  for (const GameEntry& entry : kGames) names += (names.empty() ? "" : ", ") + entry.env().name;
  throw Error(ExitCode::kUsage,
              "environment '" + env + "' has no device lanes; these have: " + names);
}

}  // namespace

DeviceShow DeviceShowOf(const DeviceLanesConfig& config) {
  DeviceShow show = {MakeEnvSpec(config.env), DeviceRecord::kState};
  const GameEntry& game = GameOf(config.env.name);
  ObsSpec& obs = show.spec.obs;
  if (game.has_pictures && config.record == kPlanesRecord) {
    show.record = DeviceRecord::kPlanes;
    obs.view_floats = PlanesLayout::Floats(obs.queue_size);
    obs.record_bytes = static_cast<std::uint32_t>(obs.view_floats);
    obs.expand = ExpandPlaneBytes;
  } else if (game.has_pictures && config.record == kPacked2Record) {
    show.record = DeviceRecord::kPacked2;
    obs.view_floats = Packed2Layout::kRows * Packed2Layout::kColumns;
    obs.record_bytes = static_cast<std::uint32_t>(Packed2Layout::kBytes);
    obs.expand = ExpandPacked2Shades;
  } else if (obs.record_bytes != game.state_bytes ||
             (!config.record.empty() && config.record != obs.record)) {
    throw Error(ExitCode::kUsage, "device lanes of " + config.env.name + " keep no '" +
                                      (config.record.empty() ? obs.record : config.record) +
                                      "' records of view '" + obs.view + "'");
  }
  if (show.record != DeviceRecord::kState) {
    obs.record = obs.view = config.record;
    obs.network = ObsSpec().network;
    obs.check = nullptr;
  }
  return show;
}

std::unique_ptr<DeviceGame> MakeDeviceGame(const cuda::Device& device,
                                           const DeviceLanesConfig& config, DeviceRecord record) {
  return GameOf(config.env.name).make(device, config.env, record);
}

}  // namespace tetrion
