#include "services/learner/link_agent.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "lib/core/log.h"

namespace tetrion::learner {
namespace {

constexpr int kPollMs = 5;
constexpr std::int64_t kResendNs = 500 * kNanosPerMilli;
constexpr MemberLink::GoodbyeTimes kGoodbye = {.repeat_ns = kResendNs / 2,
                                               .give_up_ns = 3 * kNanosPerSecond};

}  // namespace

LearnerLinkAgent::LearnerLinkAgent(const MemberConfig& config, Hooks hooks, RingBoard& board,
                                   Versions& versions, const std::atomic<bool>& drain,
                                   const Clock& clock)
    : hooks_(std::move(hooks)),
      board_(board),
      versions_(versions),
      clock_(clock),
      member_(config, kGoodbye, *this, drain, clock),
      link_(member_.link()) {}

int LearnerLinkAgent::DoWork() {
  if (member_.DrainIsAsked()) StartDrain();  // before a session that it would only end again
  link_.DoWork(kPollMs);
  LookAtBuild();
  member_.PublishState(built_ ? "" : "replay and checkpoint are being made ready");
  ReportEnded();
  if (!member_.Running()) Drain();
  return 1;
}

void LearnerLinkAgent::LookAtBuild() {
  if (!building_ || !hooks_.built()) return;
  building_ = false;
  built_ = true;
}

wire::Register LearnerLinkAgent::MakeRegister() {
  return member_.Registration(wire::Role::kLearner);
}

void LearnerLinkAgent::OnRegistered(const wire::Registered& registered, bool renewed) {
  versions_.Allow(registered.version_first, registered.version_limit);
  have_list_ = false;
  if (!building_ && !built_) {
    hooks_.start_build(registered);
    building_ = true;
    follows_another_ = registered.version_first > 1;
  }
  member_.CheckSettings(registered);
  log::info("session {} {}, versions from {}", wire::SessionSequence(registered.session),
            renewed ? "renewed" : "begun", registered.version_first);
}

void LearnerLinkAgent::OnFenced() {
  member_.OnFenced();
}

wire::Heartbeat LearnerLinkAgent::MakeHeartbeat() {
  const char* phase = built_ ? "running" : "starting";
  if (!member_.Running()) phase = wire::kPhaseDraining;
  wire::Heartbeat heartbeat = {
      .phase = phase, .rings_revision = have_list_ ? board_.revision() : 0, .region_held = built_};
  if (built_) hooks_.fill(heartbeat);
  return heartbeat;
}

void LearnerLinkAgent::OnHeartbeatAck(const wire::HeartbeatAck& ack) {
  versions_.Allow(1, ack.version_limit);
  if (!earlier_episodes_) earlier_episodes_ = follows_another_ ? ack.episodes : 0;
  const std::uint64_t own = ack.episodes - std::min(ack.episodes, *earlier_episodes_);
  const bool known = own >= (*earlier_episodes_ > 0 ? wire::kMeanEpisodes : 1);
  const double none = std::numeric_limits<double>::quiet_NaN();
  mean_return_.store(known ? ack.mean_return : none, std::memory_order_relaxed);
}

void LearnerLinkAgent::OnRunEnds() {
  run_ends_.store(true, std::memory_order_relaxed);
  if (member_.Running()) StartDrain();
}

void LearnerLinkAgent::OnMessage(const wire::Message& message) {
  const auto* list = std::get_if<wire::RingList>(&message);
  if (list == nullptr) {
    if (std::holds_alternative<wire::GoodbyeAck>(message)) member_.OnGoodbyeAck();
    return;
  }
  have_list_ = true;
  board_.ForgetEndedExcept(list->rings);
  board_.SetList(list->revision, list->rings);
}

// Tells of ended rings until the coordinator's list lacks them; new ones at once.
void LearnerLinkAgent::ReportEnded() {
  if (!link_.registered()) return;
  const std::vector<EndedRing> ended = board_.Ended();
  const std::int64_t now_ns = clock_.NowNs();
  if (ended.empty() || (ended.size() <= reported_ && now_ns < next_report_ns_)) {
    reported_ = ended.size();
    return;
  }
  for (const EndedRing& ring : ended) {
    link_.Send(wire::RingGone{.session = link_.session(),
                              .path = ring.path,
                              .end = ring.end,
                              .reason = ring.reason,
                              .owner = ring.owner});
  }
  reported_ = ended.size();
  next_report_ns_ = now_ns + kResendNs;
}

void LearnerLinkAgent::StartDrain() {
  const bool built = building_ || built_;
  log::info("draining{}", built ? ": training goes on until the rings have ended" : "");
  hooks_.drain_lanes();
  member_.StartDrain(built);
}

// What the drain waits for; empty: nothing any more.
std::string LearnerLinkAgent::Awaited() const {
  if (hooks_.failed()) return "";
  if (!built_) return "still starting";
  if (!hooks_.lanes_done()) return "resident lanes still play";
  // Without a session the ended rings are not taken off the list any more.
  const bool over = have_list_ && (link_.session() == 0 ? board_.AllEnded() : board_.Empty());
  if (!over) return "rings are still open";
  return hooks_.batch_waits() ? "rows still wait to be trained" : "";
}

bool LearnerLinkAgent::Stopped() {
  try {
    return hooks_.stopped();
  } catch (...) {
    unsaved_ = true;
    throw;
  }
}

// On updates and rows; heartbeats end here.
void LearnerLinkAgent::SayLastWord() {
  wire::Heartbeat last = MakeHeartbeat();
  last.session = link_.session();
  link_.Send(last);
}

// After any other failure what trains may still go on, and with it the session.
void LearnerLinkAgent::OnClose() {
  if (unsaved_) SayLastWord();
  if (unsaved_ || !built_) member_.LeaveAtOnce();
}

void LearnerLinkAgent::Drain() {
  if (member_.Draining()) {
    if (!stopping_) {
      const std::string awaited = Awaited();
      if (!awaited.empty() && !member_.DrainIsLate()) return;
      if (!awaited.empty()) log::warn("{} after the drain time-out", awaited);
      if (built_) hooks_.start_stop();
      stopping_ = built_;
    }
    if (stopping_ && !Stopped()) return;  // the session goes on meanwhile
    SayLastWord();
    member_.StartGoodbye();
  }
  member_.SayGoodbye(link_.session(), /*env_steps=*/0);
}

}  // namespace tetrion::learner
