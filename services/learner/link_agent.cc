#include "services/learner/link_agent.h"

#include <utility>
#include <variant>

#include "lib/core/log.h"
#include "lib/run/revision.h"
#include "lib/setup/member.h"

namespace tetrion::learner {
namespace {

constexpr int kPollMs = 5;
constexpr std::int64_t kResendNs = 500 * kNanosPerMilli;
constexpr std::int64_t kGoodbyeNs = 3 * kNanosPerSecond;

}  // namespace

LearnerLinkAgent::LearnerLinkAgent(Config config, Hooks hooks, RingBoard& board, Versions& versions,
                                   const std::atomic<bool>& drain, const Clock& clock)
    : config_(std::move(config)),
      hooks_(std::move(hooks)),
      board_(board),
      versions_(versions),
      drain_(drain),
      clock_(clock),
      link_(config_.link, *this, clock) {}

int LearnerLinkAgent::DoWork() {
  link_.DoWork(kPollMs);
  LookAtBuild();
  {
    std::string problem = built_ ? "" : "replay and checkpoint are being made ready";
    if (!link_.registered()) problem = link_.problem();
    MutexLock lock(problem_mu_);
    problem_ = problem;
  }
  if (drain_.load(std::memory_order_acquire) && phase_.load() == Phase::kRunning) StartDrain();
  ReportEnded();
  if (phase_.load() != Phase::kRunning) Drain();
  return 1;
}

void LearnerLinkAgent::LookAtBuild() {
  if (!building_ || !hooks_.built()) return;
  building_ = false;
  built_ = true;
}

wire::Register LearnerLinkAgent::MakeRegister() {
  return {.role = wire::Role::kLearner,
          .name = config_.name,
          .revision = Revision(),
          .given = config_.given,
          .http_endpoint = config_.http_endpoint,
          .shm_dir = config_.shm_dir};
}

void LearnerLinkAgent::OnRegistered(const wire::Registered& registered, bool renewed) {
  versions_.Allow(registered.version_first, registered.version_limit);
  have_list_ = false;
  if (!building_ && !built_) {
    hooks_.start_build(registered);
    building_ = true;
    run_config_ = registered.run_config;
  }
  CheckSameSettings(run_config_, registered.run_config);
  log::info("session {} {}, versions from {}", wire::SessionSequence(registered.session),
            renewed ? "renewed" : "begun", registered.version_first);
}

void LearnerLinkAgent::OnFenced() {
  if (phase_.load() != Phase::kRunning) link_.Retire();  // nothing to say under a new session
}

wire::Heartbeat LearnerLinkAgent::MakeHeartbeat() {
  const char* phase = built_ ? "running" : "starting";
  if (phase_.load() != Phase::kRunning) phase = "draining";
  wire::Heartbeat heartbeat = {
      .phase = phase, .rings_revision = have_list_ ? board_.revision() : 0, .region_held = built_};
  if (built_) hooks_.fill(heartbeat);
  return heartbeat;
}

void LearnerLinkAgent::OnHeartbeatAck(const wire::HeartbeatAck& ack) {
  versions_.Allow(1, ack.version_limit);
  mean_return_.store(ack.mean_return, std::memory_order_relaxed);
  if (ack.drain) run_ends_.store(true, std::memory_order_relaxed);
  if (ack.drain && phase_.load() == Phase::kRunning) StartDrain();
}

void LearnerLinkAgent::OnMessage(const wire::Message& message) {
  const auto* list = std::get_if<wire::RingList>(&message);
  if (list == nullptr) {
    if (std::holds_alternative<wire::GoodbyeAck>(message) && phase_.load() == Phase::kGoodbye) {
      phase_.store(Phase::kDone, std::memory_order_release);
    }
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
    link_.Send(wire::RingGone{
        .session = link_.session(), .path = ring.path, .end = ring.end, .reason = ring.reason});
  }
  reported_ = ended.size();
  next_report_ns_ = now_ns + kResendNs;
}

void LearnerLinkAgent::StartDrain() {
  log::info("draining: training goes on until the rings have ended");
  drain_until_ns_ = clock_.NowNs() + config_.drain_timeout_ns;
  const bool begun = building_ || built_;
  phase_.store(begun ? Phase::kDraining : Phase::kDone, std::memory_order_release);
}

void LearnerLinkAgent::Drain() {
  const std::int64_t now_ns = clock_.NowNs();
  if (phase_.load() == Phase::kDraining) {
    // Without a session nobody takes the ended rings off the list any more.
    const bool over =
        built_ && have_list_ && (link_.session() == 0 ? board_.AllEnded() : board_.Empty());
    if (!over && now_ns < drain_until_ns_) return;
    if (!over) {
      log::warn("{} after the drain time-out", built_ ? "rings are still open" : "still starting");
    }
    if (built_) hooks_.stop_training();
    // The last word on updates and rows; heartbeats end here.
    wire::Heartbeat last = MakeHeartbeat();
    last.session = link_.session();
    link_.Send(last);
    goodbye_until_ns_ = clock_.NowNs() + kGoodbyeNs;
    link_.Retire();
    phase_.store(Phase::kGoodbye, std::memory_order_release);
  }
  if (phase_.load() != Phase::kGoodbye) return;
  if (now_ns >= goodbye_until_ns_ || link_.session() == 0) {
    phase_.store(Phase::kDone, std::memory_order_release);
  } else if (now_ns >= next_goodbye_ns_) {
    link_.Send(wire::Goodbye{.session = link_.session()});
    next_goodbye_ns_ = now_ns + kResendNs / 2;
  }
}

std::string LearnerLinkAgent::Problem() const {
  MutexLock lock(problem_mu_);
  return problem_;
}

}  // namespace tetrion::learner
