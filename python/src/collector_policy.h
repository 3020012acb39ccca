#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "lib/episodes/episode_obs.h"
#include "lib/episodes/episode_policy.h"
#include "lib/vector/obs_encoder.h"

// Python's callables as a collector's workers call them. They take the GIL for the call alone; the
// callables are borrowed from the collector, which outlives its workers.

struct _object;  // PyObject

namespace tetrion {

struct PythonPolicyConfig {
  int worker = 0;
  _object* callable = nullptr;  // policy_fn(worker, observations [n, elements])
  bool takes_mask = false;      // it has a parameter of the name: int8 [n, actions], or None
  std::string dtype;            // of the observations, numpy's name
  std::size_t obs_bytes = 0;
  std::int32_t actions = 0;  // 0..actions-1 are legal
};

// Throws what the callable raises, and ValueError naming worker, job and step for what it returns.
std::unique_ptr<ObservationPolicy> MakePythonPolicy(const PythonPolicyConfig& config);

struct FlattenConfig {
  int worker = 0;
  _object* callable = nullptr;      // obs_flatten(dict of arrays) -> 1-D array
  const ViewEntry* view = nullptr;  // what it is shown, part by part; the registry's
  int queue_size = 0;
  std::string dtype;  // of the result, numpy's name; native byte order is stored
  std::size_t elements = 0;
  std::size_t item_bytes = 0;
};

// Over records of the kind that the view is made from. Throws as MakePythonPolicy's.
std::unique_ptr<ObsWriter> MakeFlattenWriter(const FlattenConfig& config);
// What `encoder` makes of a record, without Python.
std::unique_ptr<ObsWriter> MakeEncoderWriter(const ObsEncoder& encoder);

}  // namespace tetrion
