#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/rl/dreamer/dreamer_settings.h"
#include "lib/rl/vtrace/vtrace_settings.h"
#include "lib/run/setting_fields.h"

namespace tetrion {

// Replay shard slots that a run may have: so many rings write at once, and an actor may make as
// many (lib/wire/messages.h says the same of a message).
inline constexpr int kMaxWorkersOfRun = 256;
// Ranges of RunConfig::queue_size and board_rows (lib/envs/tetris/tetris_record.h has the same of
// the game).
inline constexpr int kMostQueuePieces = 7;
inline constexpr int kFewestBoardRows = 5;
inline constexpr int kMostBoardRows = 20;
// RunConfig::scorer_units is a multiple of it (lib/nn/network.h has the same of the network).
inline constexpr int kScorerUnitsStepOfRun = 16;

// What must match across all processes of a run. The coordinator owns it: it is given the run's
// settings, actor and learner receive them at registration. Every field is declared once, here with
// its default and in FieldsOf with key, range and help: options, config file keys, canonical text,
// hash and docs follow. What only a trainer reads belongs to its algorithm
// (docs/decisions/0014-an-algorithm-declares-its-settings.md).
struct RunConfig {
  // Environment.
  std::string env = "tetris-placement";
  std::string view = "auto";  // auto takes the environment's default view
  std::uint64_t seed = 1;
  int queue_size = 4;
  std::uint32_t max_steps = 0;  // 0: the environment's default
  bool iid_pieces = false;
  int board_rows = 20;       // of Tetris's field
  bool spawn_above = false;  // pieces appear above it
  std::string reward = "squares";
  std::string illegal = "terminate";
  // Shapes.
  int lanes = 64;         // M, lanes per worker
  int max_workers = 8;    // S, replay shard slots
  int replay_rows = 0;    // Tcap, rows per shard; 0: the algorithm's
  int ring_rows = 256;    // rows per worker ring
  int commit_stride = 8;  // rows per publication
  // Learning, whatever the algorithm.
  std::string algo = "vtrace";
  std::string network = "auto";   // scorer, columns, mlp, conv; auto follows the view
  int scorer_units = 64;          // of scorer and columns, whole vectors
  std::string precision = "f32";  // of scorer and columns
  int window = 0;                 // T; 0: the algorithm's, as the next
  int batch_windows = 0;          // windows per update
  // Settings of the algorithms; a run has those of `algo`.
  VtraceSettings vtrace;
  DreamerSettings dreamer;
  bool operator==(const RunConfig&) const = default;
};

// All fields, those of every algorithm included, bound to `config`.
std::vector<SettingField> FieldsOf(RunConfig& config);

// Canonical `key = value` lines, one a field that the run has, in declaration order; those of the
// algorithm below a line "[run.vtrace]". This travels in the registration answer and is written
// under [run] in the run folder's config.toml.
std::string ToText(const RunConfig& config);
// Parses ToText's output, also with keys missing or reordered, and with keys of the algorithm among
// the others, as older run folders have them. Throws Error(kConfig) naming the key for an unknown
// key, an unreadable value or a value out of range.
RunConfig RunConfigFromText(const std::string& text);
// xxhash64 of the settings that stay for the run's life: equal for what checkpoints, regions and
// processes of one run may share, also when it was resumed with other settings of learning. An
// algorithm's come after the common ones, without a heading: the value outlives changes of ToText.
// A window or batch_windows of 0 counts as the algorithm's.
std::uint64_t RunConfigHash(const RunConfig& config);

// Sets one field. Throws Error(kUsage) naming key, value and the allowed range, also when the key
// is of an algorithm that is not config.algo.
void Apply(const Setting& setting, RunConfig& config);
// Sets all: first the algorithm, so that the others' order means nothing.
void ApplyAll(const std::vector<Setting>& settings, RunConfig& config);
// Fields that contradict: every setting in `given` whose value in `config` differs, as
// "key: here X, the run has Y". Empty when all agree.
std::vector<std::string> Contradictions(const std::vector<Setting>& given, const RunConfig& config);
// Rows that a replay shard needs, a multiple of commit_stride: the 2 * batch_windows undelivered
// windows that the fifo limiter allows, and beside them a batch that is being read or the chunk
// that is being written, whichever is larger; never less than two chunks.
constexpr std::int64_t FifoReplayRows(int window, int batch_windows, int commit_stride) {
  const std::int64_t stride = commit_stride;
  const std::int64_t undelivered = 2 * std::int64_t{batch_windows} * window;
  const std::int64_t needed =
      std::max(undelivered + std::max(2 * std::int64_t{window}, stride), 2 * stride);
  return (needed + stride - 1) / stride * stride;
}
// A setting that changes with a resume, values as text.
struct SettingChange {
  std::string key, before, after;
};
// Applies to the settings of a resumed run what `given` has otherwise and returns what has changed;
// the caller resolves them. Throws Error(kUsage) naming every setting that may not change, with
// both values.
std::vector<SettingChange> ApplyOnResume(const std::vector<Setting>& given, RunConfig& config);
// Takes the algorithm's window, batch_windows and replay_rows where they are 0 and checks the
// relations between fields that no environment is asked for (replay_rows >= FifoReplayRows,
// commit_stride divides ring_rows, ...). Throws Error(kUsage). Settings as a whole are resolved by
// lib/setup/run_setup.h.
void ResolveShapes(RunConfig& config);

}  // namespace tetrion
