#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "lib/region_v2/compat_heap.h"
#include "lib/region_v2/compat_host.h"
#include "lib/region_v2/compat_parts.h"

namespace tetrion {

// Inside of CompatHost, for its two source files only.
struct CompatHost::Impl {
  // `memory` has been laid out.
  Impl(std::span<std::byte> memory, CompatEnv& environment, const CompatEndConfig& end_config);

  CompatResult Poll();
  CompatResult PollCommands();
  CompatResult PollActions();
  CompatResult Handle(const CompatCommand& command);
  CompatResult HandleReset(std::uint32_t payload);
  void HandleMetadata();
  void HandleStep(std::uint32_t payload);
  CompatResult HandleAction(const CompatAction& action);
  CompatStep StepEnv(std::uint16_t action);
  std::uint16_t StoreObs(const CompatStep& step);
  void PushObs(const CompatStep& step);
  void Upload();
  void Recycle(std::uint16_t* outstanding_blob);
  void Respond(std::uint16_t status, std::uint16_t cmd, std::uint32_t result);
  void Refuse(std::uint16_t cmd, std::uint32_t result);
  void TellClosed(CompatErrorCode code);
  CompatResult Corrupt(const char* what);
  CompatResult CloseStream(CompatErrorCode code, std::string text);

  const CompatEndConfig config;
  const Clock& clock;
  CompatEnv& env;
  const CompatMetadata spec;
  CompatParts parts;
  CompatHeap heap;
  CompatStats stats;
  CompatWaiter waiter;
  const std::uint64_t kernel_signs_at_attach;

  bool streaming = false;
  bool running = false;   // an episode is, and is not done
  std::uint32_t seq = 0;  // of the last observation
  // An unrequested ERROR that found the response ring full. No command is served before it is sent,
  // hence no stream runs and there is never a second one.
  std::optional<CompatErrorCode> untold;
  std::optional<std::array<float, 4>> new_weights;
  std::uint16_t model_blob = 0;
  std::uint16_t metadata_blob = 0;
  std::array<std::uint16_t, kCompatMaxOutstanding> outstanding = {};  // 0: free place
  std::string problem;
};

}  // namespace tetrion
