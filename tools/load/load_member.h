#pragma once

#include <cstdint>
#include <string>

#include "lib/core/clock.h"
#include "lib/wire/session_link.h"

namespace tetrion {

// One session of an actor without workers: it registers, beats, holds a range of tokens if it is
// to, and says goodbye when it is told to leave or the run drains. One thread.
class LoadMember final : private wire::SessionOwner {
 public:
  struct Config {
    std::string name;
    bool grants = false;
    wire::SessionLink::Config link;
  };

  LoadMember(Config config, const Clock& clock);

  // Returns at once. Throws what SessionLink::DoWork throws.
  void DoWork();
  // From now on it says goodbye until that is acknowledged.
  void Leave();

  // It stands in the coordinator's start of this number.
  bool StandsIn(std::uint64_t epoch) const { return link_.registered() && epoch_ == epoch; }
  bool registered() const { return link_.registered(); }
  bool gone() const { return gone_; }
  bool granted() const { return granted_; }
  std::uint64_t epoch() const { return epoch_; }  // of its last registration; 0: none yet
  int fenced() const { return fenced_; }
  std::uint64_t reconnects() const { return link_.stats().reconnects; }
  std::int64_t last_answer_ns() const { return last_answer_ns_; }

 private:
  wire::Register MakeRegister() override;
  void OnRegistered(const wire::Registered& registered, bool renewed) override;
  void OnFenced() override;
  wire::Heartbeat MakeHeartbeat() override;
  void OnHeartbeatAck(const wire::HeartbeatAck& ack) override;
  void OnRunEnds() override { Leave(); }
  void OnMessage(const wire::Message& message) override;

  const Config config_;
  const Clock& clock_;
  wire::SessionLink link_;
  bool leaving_ = false, gone_ = false, granted_ = false;
  std::uint64_t epoch_ = 0;
  int fenced_ = 0;
  std::int64_t last_answer_ns_;
  std::int64_t next_request_ns_ = 0;
};

}  // namespace tetrion
