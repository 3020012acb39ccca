#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lib/envs/picture.h"
#include "lib/envs/vec_env.h"
#include "lib/frame/specs.h"

namespace tetrion {

// Everything that the rest of the tree knows of an environment, once: run settings, policies,
// networks, pictures and Python ask here. `queue_size` below is the pieces in the preview, 0 where
// the environment does not take that setting.

// A kind of record: what lanes keep, store and send.
struct RecordKind {
  std::string name;  // of the layout: views whose kinds have one name share the lanes' records
  std::uint32_t bytes = 0;
  CheckRecordsFn check = nullptr;  // null: views of any bytes are finite
};

// A part of a view that Python shows as an array of its own: elements `first` and on, row-major.
struct ViewPart {
  std::string name;
  std::int64_t first = 0;
  std::vector<std::int64_t> shape;
  float most = 0;  // elements are 0..most
};

// Makes a u8 view: `records` is [n, bytes of the view's kind] u8, `out` is [n, elements] u8. Pure,
// no allocation, any thread.
using ExpandBytesFn = void (*)(const std::byte* records, std::int64_t n, int queue_size,
                               std::uint8_t* out);

// One way to show a state: as f32, to networks and in Python, or as u8, in Python alone.
struct ViewEntry {
  std::string name;
  std::string shown_as;  // its name among Python's observations; empty: `name`
  RecordKind record;     // what it is made from: the first bytes of any kind that the lanes keep
  std::int64_t (*elements)(int queue_size) = nullptr;
  ExpandFn expand = nullptr;                 // f32
  ExpandBytesFn expand_bytes = nullptr;      // u8; neither: the record's bytes themselves
  int action_floats = 0, board_columns = 0;  // as ObsSpec's
  // That can read it, what `auto` means first; empty for u8.
  std::vector<std::string> networks;
  // Bounds of the elements in Python's space: one for all, or one each.
  std::vector<float> low = {0}, high = {255};
  std::vector<ViewPart> (*parts)(int queue_size) = nullptr;  // null: one array; u8 only
  // Settings of runs with this view; they stand between the environment's preset and the user's.
  std::vector<std::pair<std::string, std::string>> preset;

  bool is_float() const { return expand != nullptr; }
  const std::string& observation() const { return shown_as.empty() ? name : shown_as; }
};

// Draws records. `record` is one of any kind that the environment has; its bytes may be any.
struct PictureEntry {
  RecordKind record;  // the kind that shows most; it begins with the bytes of the other kinds
  int fps = 10;
  int scale = 1;      // pixels a unit in Python, unless told otherwise
  int gif_scale = 1;  // pixels a unit in `play --gif`
  RgbSize (*size)(int queue_size, int scale) = nullptr;
  // `out` holds size(queue_size, scale).Bytes(), written in kPictureColours only.
  void (*draw)(std::span<const std::byte> record, int queue_size, int scale,
               std::uint8_t* out) = nullptr;
  // Lines for a terminal.
  std::string (*text)(std::span<const std::byte> record) = nullptr;
};

struct ActionEntry {
  std::string name;
  char key = 0;  // that plays it in gymnasium.utils.play; 0: none
};

// Settings of EnvConfig that not every environment takes, as the run's settings are called.
inline constexpr const char* kQueueSizeOption = "queue_size";
inline constexpr const char* kIidPiecesOption = "iid_pieces";
inline constexpr const char* kBoardRowsOption = "board_rows";
inline constexpr const char* kSpawnAboveOption = "spawn_above";
inline constexpr const char* kRewardOption = "reward";
inline constexpr const char* kIllegalOption = "illegal";

struct EnvEntry {
  std::string name;
  std::string python_name;  // X of the class XEnv and the id tetrion/X-v0
  std::vector<ViewEntry> views;
  std::string default_view;  // of a run
  std::string default_obs;   // of Python's id
  std::vector<ActionEntry> actions;
  std::uint32_t max_steps = 0;       // an episode is truncated here unless told otherwise
  std::vector<std::string> options;  // that it takes, of those above
  bool has_lines = false;            // episodes report lines cleared
  // Settings of a run, key and value, that stand between the general defaults and the user's; those
  // of an algorithm ("vtrace.lambda", "dreamer.lanes") count in its runs.
  std::vector<std::pair<std::string, std::string>> preset;
  PictureEntry picture;
  // The legal actions of a record of any kind and any bytes; null: all, and rows have no mask.
  std::uint64_t (*mask)(const std::byte* record) = nullptr;
  // `spec` is the environment's with its view filled in; `config` has been checked.
  std::unique_ptr<VecEnv> (*make)(EnvSpec spec, const EnvConfig& config) = nullptr;

  bool Takes(const std::string& option) const;
  // The view that a run's network is to read, "" for the default; throws Error(kUsage) with the
  // names there are.
  const ViewEntry& NetworkView(const std::string& view) const;
  // The view that Python calls `obs`; throws Error(kUsage) with the names there are.
  const ViewEntry& Observation(const std::string& obs) const;
  // The name of a network's view whose records are of `kind`; CHECKs that there is one.
  const std::string& ViewOfRecord(const RecordKind& kind) const;
  // Whether a record of the environment has so many bytes.
  bool HasRecordOf(std::size_t bytes) const;
};

// Adds an environment. For the start of a program: not while another thread asks. CHECKs that the
// name is new and the entry whole, as it does for those of lib/envs, and names what is missing.
void RegisterEnv(EnvEntry entry);
// All of them, those of lib/envs first. References stay valid.
const std::deque<EnvEntry>& Envs();
// Throws Error(kUsage) naming the known environments when `name` is unknown.
const EnvEntry& EnvOf(const std::string& name);
// "tetris, cartpole".
std::string EnvNames();

}  // namespace tetrion
