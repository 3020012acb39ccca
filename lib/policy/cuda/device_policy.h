#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "lib/cuda/device.h"
#include "lib/frame/device_expand.h"
#include "lib/frame/row_slots.h"
#include "lib/frame/specs.h"
#include "lib/nn/dreamer/dreamer_shape.h"
#include "lib/policy/policy.h"

namespace tetrion {

struct DevicePolicyConfig {
  // mlp, dreamer, or random: no network, all legal actions are equally likely.
  std::string network = "mlp";
  std::uint64_t seed = 1;           // initial weights and, with token and step, every action drawn
  int lanes = 1;                    // M
  bool greedy = false;              // the most probable action instead of a draw; not for random
  DeviceExpandFn expand = nullptr;  // makes the environment's view (lib/envs/cuda); not for random
  std::optional<DreamerShape> dreamer = {};  // the model of network dreamer
};

// Chooses the actions of rows in device memory: the twin of Policy, with the same choice for the
// same logits. Owns its device memory; allocates nothing after construction.
//
// Thread role: one thread and one stream, whose order is that of rows and weights.
class DevicePolicy {
 public:
  virtual ~DevicePolicy() = default;
  DevicePolicy(const DevicePolicy&) = delete;
  DevicePolicy& operator=(const DevicePolicy&) = delete;

  // Enqueues the decision of row `*row` of `slots`, a number in device memory: reads its records,
  // masks and flags, writes actions and log-probabilities of all lanes (0 where is_last) and the
  // header's policy_version. `token_ids` and `steps` [M] lie in device memory, steps being the
  // actions taken so far in the episode: the counters of a lane's draw. May be captured; a graph
  // decides by the weights of the time when it is launched. Makes no copy.
  virtual void Decide(const RowSlots& slots, const std::uint64_t* row,
                      const std::uint64_t* token_ids, const std::uint32_t* steps,
                      cuda::Stream& stream) = 0;

  // As Policy::LoadWeights, behind the stream's work: rows enqueued before keep weights and
  // version. `blob` is read before it returns. Not in a capture; may wait for the copy of the load
  // before the last one.
  virtual LoadResult LoadWeights(std::span<const std::byte> blob, std::uint32_t version,
                                 cuda::Stream& stream) = 0;
  virtual std::size_t WeightsBytes() const { return 0; }
  virtual std::uint32_t version() const = 0;  // of the last load

  // Rows so far on which the logits of an acting lane were not finite: such a lane takes a legal
  // action, all of them equally likely, with that log-probability. Enqueue copies the count
  // (purpose kAccount) unless a copy is under way; Take gives it once it is there. Neither blocks.
  virtual void EnqueueCheck(cuda::Stream& /*stream*/) {}
  virtual std::optional<std::uint64_t> TakeCheck() { return 0; }

 protected:
  DevicePolicy() = default;
};

// Waits for the device. Throws Error(kUsage) when there is no such network on a device.
std::unique_ptr<DevicePolicy> MakeDevicePolicy(const cuda::Device& device,
                                               const DevicePolicyConfig& config,
                                               const EnvSpec& env);

}  // namespace tetrion
