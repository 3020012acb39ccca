#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tetrion {

// Expands `n` records lying back to back ([n, record_bytes] u8) into the network's view
// ([n, view_floats] f32). `queue_size` is the environment's (Tetris; ignored elsewhere). Pure, no
// allocation, any thread.
using ExpandFn = void (*)(const std::byte* records, std::int64_t n, int queue_size, float* out);

// Looks `n` records over that came from another process ([n, record_bytes] u8). Returns nullptr or
// what is wrong, as a constant string. Pure, no allocation, any thread.
using CheckRecordsFn = const char* (*)(const std::byte* records, std::int64_t n);

// Rows of a board that a view shows as columns.
inline constexpr int kBoardRows = 20;

// What travels and is stored (the record) and what a network eats (the view made from it). Used by
// the actor's policy and by the learner's batch builder alike; views never travel.
struct ObsSpec {
  std::string record;  // its kind, as lib/envs/registry.h calls it
  std::uint32_t record_bytes = 0;
  std::string view;
  std::int64_t view_floats = 0;  // floats of one lane's view
  // The view begins with so many floats for each action: what the action would lead to. 0: it does
  // not.
  int action_floats = 0;
  // Those of an action, and the rest of the view, begin with so many columns of a board: the cells
  // of each as an integer of kBoardRows bits, the floor's the lowest. 0: they do not.
  int board_columns = 0;
  int queue_size = 0;
  ExpandFn expand = nullptr;
  CheckRecordsFn check = nullptr;  // null: views of any bytes are finite
  std::string network = "mlp";     // that `auto` means for this view
};

struct ActionSpec {
  std::int32_t count = 0;  // actions are 0..count-1
  bool has_mask =
      false;  // legal-action mask with every observation, bit a for action a (count <= 64)
};

// Everything a policy, a trainer or a replay needs to know of an environment.
struct EnvSpec {
  std::string name;
  ObsSpec obs;
  ActionSpec action;
  bool has_lines = false;  // episodes report lines cleared
};

}  // namespace tetrion
