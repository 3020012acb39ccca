#pragma once

// The games of device lanes: the rules of lib/envs with states in device memory. A game is copied
// into each launch and has
//   kActions
//   Begin(lane, token_id)         starts the token's game
//   Play(lane, token_id, action)  the action is in range
//   Show(lane, is_idle, records)  writes the lane's record, zeros for a lane without an episode
//   Mask(lane)                    where the environment has masks

#include "lib/cuda/kernel.h"
#include "lib/envs/cartpole/cartpole_rules.h"
#include "lib/envs/lane_account.h"
#include "lib/envs/tetris/tetris_pieces.h"
#include "lib/envs/tetris/tetris_step.h"

namespace tetrion {

struct CartPoleLanes {
  static constexpr int kActions = kCartPoleActions;

  __device__ void Begin(std::size_t lane, std::uint64_t token_id) {
    state[lane] = CartPoleReset(seed, token_id);
  }
  __device__ LaneOutcome Play(std::size_t lane, std::uint64_t /*token_id*/, int action) {
    CartPoleState played = state[lane];
    const bool terminated = CartPoleStep(played, action);
    state[lane] = played;
    return {1.0F, 0, terminated};
  }
  __device__ void Show(std::size_t lane, bool is_idle, std::byte* records) const {
    const CartPoleRecord none = {};
    reinterpret_cast<CartPoleRecord*>(records)[lane] = is_idle ? none : RecordOf(state[lane]);
  }
  __device__ std::uint64_t Mask(std::size_t /*lane*/) const { return (1U << kActions) - 1; }

  std::uint64_t seed = 0;
  cuda::DeviceSpan<CartPoleState> state;  // [M]
};

// PhiloxPieces but for what the token says.
struct PieceDraws {
  std::uint32_t drawn, bag;
};

struct TetrisLanes {
  static constexpr int kActions = kTetrisActions;

  __device__ void Begin(std::size_t lane, std::uint64_t token_id) {
    PhiloxPieces pieces = PhiloxPieces::Of(seed, token_id, iid_pieces);
    TetrisRecord begun;
    TetrisReset(begun, setup, pieces);
    Put(lane, begun, pieces);
  }
  __device__ LaneOutcome Play(std::size_t lane, std::uint64_t token_id, int action) {
    PhiloxPieces pieces = {seed, token_id, draws[lane].drawn, draws[lane].bag};
    TetrisRecord played = record[lane];
    const TetrisOutcome outcome = TetrisStep(played, action, pieces);
    Put(lane, played, pieces);
    return ForRow(outcome, setup.reward);
  }
  __device__ void Show(std::size_t lane, bool is_idle, std::byte* records) const {
    const TetrisRecord none = {};
    reinterpret_cast<TetrisRecord*>(records)[lane] = is_idle ? none : record[lane];
  }
  __device__ std::uint64_t Mask(std::size_t /*lane*/) const { return (1U << kActions) - 1; }

  __device__ void Put(std::size_t lane, const TetrisRecord& now, const PhiloxPieces& pieces) {
    record[lane] = now;
    draws[lane] = {pieces.drawn, pieces.bag};
  }

  std::uint64_t seed = 0;
  TetrisSetup setup = {};
  bool iid_pieces = false;
  cuda::DeviceSpan<TetrisRecord> record;  // [M]
  cuda::DeviceSpan<PieceDraws> draws;     // [M]
};

struct PlacementLanes : TetrisLanes {
  static constexpr int kActions = kPlacementActions;

  __device__ LaneOutcome Play(std::size_t lane, std::uint64_t token_id, int action) {
    PhiloxPieces pieces = {seed, token_id, draws[lane].drawn, draws[lane].bag};
    TetrisRecord played = record[lane];
    const TetrisOutcome outcome = PlacementStep(played, action, illegal_is_noop, pieces);
    Put(lane, played, pieces);
    return ForRow(outcome, setup.reward);
  }
  __device__ std::uint64_t Mask(std::size_t lane) const { return PlacementMask(record[lane]); }

  bool illegal_is_noop = false;
};

}  // namespace tetrion
