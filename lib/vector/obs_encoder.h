#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/envs/registry.h"

namespace tetrion {

// What a Python environment is made from: the registry's settings plus how it shows itself.
struct PyEnvConfig {
  std::string env = "tetris";  // see lib/envs/registry.h
  std::string obs = "flat";    // one of the entry's views, as ViewEntry::observation() calls it
  int queue_size = 4;
  bool iid_pieces = false;
  int rows = 20;
  bool spawn_above = false;
  TetrisReward reward = TetrisReward::kSquares;
  bool illegal_is_noop = false;
  bool colours = false;  // keep the kind of record that pictures show most of, whatever `obs`
  std::uint32_t max_steps = 0;  // an episode is truncated here; 0: the environment's default
};

// Turns an environment's records into the array that a Python user asked for. Pure; any thread.
class ObsEncoder {
 public:
  // records [n, record_bytes] u8 -> out [n, bytes()].
  void Encode(const std::byte* records, std::int64_t n, std::byte* out) const;

  std::int64_t elements() const { return elements_; }   // of one observation
  bool is_float() const { return expand_ != nullptr; }  // f32, else u8
  std::size_t bytes() const {
    return static_cast<std::size_t>(elements_) * (is_float() ? sizeof(float) : 1);
  }

 private:
  friend ObsEncoder MakeObsEncoder(const PyEnvConfig& config, const EnvSpec& spec);

  std::int64_t elements_ = 0;
  int queue_size_ = 0;
  std::size_t record_bytes_ = 0;          // of the environment
  std::size_t needed_bytes_ = 0;          // how much of a record the functions below read
  ExpandFn expand_ = nullptr;             // f32 views
  ExpandBytesFn expand_bytes_ = nullptr;  // u8 views; neither: the record's first elements_ bytes
};

// The registry's configuration of `config`: the view decides which records are kept. Throws
// Error(kUsage) for an unknown environment or observation.
EnvConfig EnvConfigOf(const PyEnvConfig& config);

// `spec` is of EnvConfigOf(config). Throws Error(kUsage) naming the observations there are.
ObsEncoder MakeObsEncoder(const PyEnvConfig& config, const EnvSpec& spec);

}  // namespace tetrion
