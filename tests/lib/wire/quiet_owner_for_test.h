#pragma once

#include "lib/wire/session_link.h"

namespace tetrion::wire {

// The owner of a link whose session is none of the test's business.
class QuietOwner final : public SessionOwner {
 public:
  Register MakeRegister() override { return {.name = "actor-0"}; }
  void OnRegistered(const Registered&, bool) override {}
  void OnFenced() override {}
  Heartbeat MakeHeartbeat() override { return {}; }
  void OnHeartbeatAck(const HeartbeatAck&) override {}
  void OnRunEnds() override {}
  void OnMessage(const Message&) override {}
};

}  // namespace tetrion::wire
