#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/envs/vec_env.h"

namespace tetrion {

// What a Python environment is made from: the registry's settings plus how it shows itself.
struct PyEnvConfig {
  std::string env = "tetris";  // see lib/envs/vec_env.h
  std::string obs = "flat";    // see MakeObsEncoder
  int queue_size = 4;
  bool iid_pieces = false;
  bool illegal_is_noop = false;
  bool colours = false;         // keep the colours of locked cells even where `obs` shows none
  std::uint32_t max_steps = 0;  // an episode is truncated here; 0: the environment's default
};

// The environment's truncation when none is asked for: cartpole 500, tetris-placement 5000, tetris
// 10000 steps.
std::uint32_t DefaultMaxSteps(const std::string& env);

// Turns an environment's records into the array that a Python user asked for. Pure; any thread.
class ObsEncoder {
 public:
  // records [n, record_bytes] u8 -> out [n, bytes()].
  void Encode(const std::byte* records, std::int64_t n, std::byte* out) const;

  std::int64_t elements() const { return elements_; }  // of one observation
  bool is_float() const { return is_float_; }          // f32, else u8
  std::size_t bytes() const {
    return static_cast<std::size_t>(elements_) * (is_float_ ? sizeof(float) : 1);
  }

 private:
  friend ObsEncoder MakeObsEncoder(const PyEnvConfig& config, const EnvSpec& spec);
  using DictFn = void (*)(const std::byte* records, std::int64_t n, int queue_size,
                          std::uint8_t* out);

  std::int64_t elements_ = 0;
  bool is_float_ = false;
  int queue_size_ = 0;
  std::size_t record_bytes_ = 0;  // of the environment
  std::size_t needed_bytes_ = 0;  // how much of a record the functions below read
  ExpandFn expand_ = nullptr;     // f32 views
  DictFn dict_ = nullptr;         // u8 views
  bool packed2_ = false;          // pixels; none of the three: the record's first elements_ bytes
};

// The registry's configuration of `config`: the view decides which records are kept.
EnvConfig EnvConfigOf(const PyEnvConfig& config);

// Names of the observations that `env` has; none for an unknown environment.
std::vector<std::string> ObservationsOf(const std::string& env);

// `spec` is of EnvConfigOf(config). Observations: tetris and tetris-placement have flat, dict (one
// buffer, lib/envs/gym_views.h), planes, packed2 and compact; tetris-placement also afterstates;
// cartpole has flat (its four numbers) and compact (the same as bytes). Throws Error(kUsage) naming
// them.
ObsEncoder MakeObsEncoder(const PyEnvConfig& config, const EnvSpec& spec);

}  // namespace tetrion
