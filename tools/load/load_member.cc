#include "tools/load/load_member.h"

#include <utility>
#include <variant>

namespace tetrion {
namespace {

// A grant request and a goodbye are said again so often until they are answered.
constexpr std::int64_t kResendNs = kNanosPerSecond;

}  // namespace

LoadMember::LoadMember(Config config, const Clock& clock)
    : config_(std::move(config)),
      clock_(clock),
      link_(config_.link, *this, clock),
      last_answer_ns_(clock.NowNs()) {}

void LoadMember::DoWork() {
  if (gone_) return;
  link_.DoWork(0);
  const bool asks = leaving_ || (config_.grants && !granted_ && link_.registered());
  if (!asks || clock_.NowNs() < next_request_ns_) return;
  next_request_ns_ = clock_.NowNs() + kResendNs;
  if (leaving_) {
    link_.Send(wire::Goodbye{.session = link_.last_session()});
  } else {
    link_.Send(wire::GrantRequest{.session = link_.session(), .request = 1});
  }
}

void LoadMember::Leave() {
  if (leaving_) return;
  leaving_ = true;
  next_request_ns_ = 0;
  link_.Retire();
  gone_ = link_.last_session() == 0;  // it never was there
}

// What it holds is not listed: the coordinator keeps tokens of which nothing is said.
wire::Register LoadMember::MakeRegister() {
  return {.role = wire::Role::kActor, .name = config_.name};
}

void LoadMember::OnRegistered(const wire::Registered& registered, bool renewed) {
  epoch_ = registered.epoch;
  last_answer_ns_ = clock_.NowNs();
  if (!renewed) granted_ = false;
  next_request_ns_ = 0;
}

void LoadMember::OnFenced() {
  ++fenced_;
}

wire::Heartbeat LoadMember::MakeHeartbeat() {
  return {.phase = "idle"};
}

void LoadMember::OnHeartbeatAck(const wire::HeartbeatAck&) {
  last_answer_ns_ = clock_.NowNs();
}

void LoadMember::OnMessage(const wire::Message& message) {
  last_answer_ns_ = clock_.NowNs();
  if (std::holds_alternative<wire::Grant>(message)) granted_ = true;
  if (std::holds_alternative<wire::GoodbyeAck>(message)) gone_ = leaving_;
}

}  // namespace tetrion
