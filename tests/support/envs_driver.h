#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "lib/core/philox.h"
#include "lib/envs/registry.h"
#include "lib/envs/vec_env.h"

namespace tetrion::testing {

// The name of every environment that there is.
inline std::vector<std::string> AllEnvNames() {
  std::vector<std::string> names;
  for (const EnvEntry& entry : Envs()) names.push_back(entry.name);
  return names;
}

// Uniform draws that follow from a seed; not for concurrent use.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t Word() {
    if (used_ == 4) {
      block_ = PhiloxDraw(seed_, 0, number_++, PhiloxPurpose::kSampler);
      used_ = 0;
    }
    return block_.word[used_++];
  }
  // Uniform in [0, bound).
  int Below(int bound) {
    return static_cast<int>(BoundedDraw(Word(), static_cast<std::uint32_t>(bound)));
  }

 private:
  const std::uint64_t seed_;
  std::uint32_t number_ = 0;
  int used_ = 4;
  PhiloxBlock block_ = {};
};

// A VecEnv with a row of its own to write into.
class RowedEnv {
 public:
  explicit RowedEnv(const EnvConfig& config)
      : env(MakeVecEnv(config)),
        layout({.record_bytes = env->spec().obs.record_bytes,
                .lanes = static_cast<std::uint32_t>(env->lanes()),
                .has_mask = env->spec().action.has_mask}),
        bytes_(layout.row_bytes / sizeof(Chunk)),
        row(layout, bytes_.data()->bytes),
        actions(static_cast<std::size_t>(env->lanes())),
        all_lanes(actions.size()) {
    std::iota(all_lanes.begin(), all_lanes.end(), 0);
  }

  void StepAll() { env->Step(all_lanes, actions.data(), row); }

  // The record of a lane as its type.
  template <typename Record>
  const Record& RecordAt(int lane) const {
    return reinterpret_cast<const Record*>(row.record)[lane];
  }

  std::unique_ptr<VecEnv> env;
  const RowLayout layout;

 private:
  struct alignas(64) Chunk {
    std::byte bytes[64];
  };
  std::vector<Chunk> bytes_;

 public:
  const RowView row;
  std::vector<std::int32_t> actions;  // [M]
  std::vector<int> all_lanes;         // 0..M-1
};

}  // namespace tetrion::testing
