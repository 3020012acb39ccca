#pragma once

#include <cstdint>
#include <string>

#include "lib/run/run_config.h"
#include "services/coordinator/run_state.h"

namespace tetrion::coordinator {

// What the control agent is told.
struct ControlConfig {
  std::string bind = "tcp://127.0.0.1:0";
  std::string run;
  std::string run_folder;  // absolute
  std::string shm_dir;
  RunConfig run_config;  // resolved
  std::uint32_t heartbeat_ms = 1000;
  std::uint32_t session_lease_ms = 10000;
  std::uint32_t drain_timeout_ms = 20000;
  StopAfter stop_after;
  int poll_ms = 50;  // longest wait of a cycle
};

// A member and where its /metrics is.
struct Member {
  std::string name, http_endpoint;
  std::uint64_t sequence = 0;  // of its session; tells members of one name apart
  bool operator==(const Member&) const = default;
};

}  // namespace tetrion::coordinator
