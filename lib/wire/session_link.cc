#include "lib/wire/session_link.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>
#include <variant>

#include "lib/core/address.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/random.h"

namespace tetrion::wire {
namespace {

// Messages handled per cycle: a flood must not keep the owner from its other duties.
constexpr int kMaxMessagesPerCycle = 256;

// A cycle takes milliseconds; after a longer one the process was stopped, or the machine slept.
constexpr std::int64_t kStoodNs = kNanosPerSecond;

constexpr Backoff::Config kConnectBackoff = {.first_ns = 20 * kNanosPerMilli,
                                             .max_ns = 2 * kNanosPerSecond};

// A busy coordinator answers late: each repetition would make it later.
// Also the longest delay ends before the coordinator counts as silent.
constexpr Backoff::Config kRegisterBackoff = {.first_ns = 500 * kNanosPerMilli,
                                              .max_ns = 2 * kNanosPerSecond};

Backoff::Config WithSeed(Backoff::Config config, std::uint64_t seed) {
  config.seed = seed;
  return config;
}

// Below 2^63: it travels through the store's signed columns.
std::uint64_t MakeProcess() {
  return (RandomBits() >> 1) | 1;
}

// The session a message of the coordinator is addressed to; 0 for those without.
std::uint64_t SessionOf(const Message& message) {
  return std::visit(
      [](const auto& m) -> std::uint64_t {
        if constexpr (requires { m.session; }) {
          return m.session;
        } else {
          return 0;
        }
      },
      message);
}

}  // namespace

SessionLink::SessionLink(Config config, SessionOwner& owner, const Clock& clock)
    : config_(std::move(config)),
      owner_(owner),
      clock_(clock),
      identity_{.run_id = 0, .process = config_.process != 0 ? config_.process : MakeProcess()},
      connect_backoff_(clock, WithSeed(kConnectBackoff, identity_.process)),
      register_backoff_(clock, WithSeed(kRegisterBackoff, identity_.process + 1)),
      silence_ns_(config_.silence_ns),
      last_heard_ns_(clock.NowNs()),
      last_answer_ns_(clock.NowNs()),
      worked_ns_(clock.NowNs()) {}

void SessionLink::DoWork(int timeout_ms) {
  if (client_ == nullptr) Connect();
  SendDue();
  if (client_ == nullptr) {
    // Nothing to poll yet; the endpoint file is looked at again when the back-off says so.
    std::this_thread::sleep_for(std::chrono::milliseconds(timeout_ms));
    return;
  }
  for (int i = 0; i < kMaxMessagesPerCycle; ++i) {
    const ReceiveResult received = client_->Receive(i == 0 ? timeout_ms : 0);
    if (received.status == ReceiveStatus::kTimeout) break;
    if (received.status == ReceiveStatus::kWrongVersion) {
      throw Error(ExitCode::kConfig, client_->problem());
    }
    if (received.status == ReceiveStatus::kMessage) Handle(received.message, received.sender);
  }
}

void SessionLink::Connect() {
  if (!connect_backoff_.TryNow()) return;
  const CoordinatorPlace place = config_.endpoint();
  if (place.endpoint.empty()) {
    if (!place.why_unknown.empty()) problem_ = place.why_unknown;
    if (clock_.NowNs() - last_answer_ns_ >= config_.silence_ns) SayProblemOnce();
    return;
  }
  Want(place);
  problem_ = "the coordinator at " + place.endpoint + " has not answered yet";
  client_ = std::make_unique<ControlClient>(
      ControlClient::Config{.endpoint = place.endpoint,
                            .backoff = WithSeed({}, identity_.process + 2),
                            .identity = identity_,
                            .context = config_.context,
                            .security = config_.security},
      clock_);
  last_heard_ns_ = clock_.NowNs();
}

// The run that is to be joined, before one is.
void SessionLink::Want(const CoordinatorPlace& place) {
  if (last_session() != 0) return;
  identity_.run_id = place.run_id;
  run_ = place.run;
}

// An idle member hears of the coordinator once a heartbeat.
std::int64_t SessionLink::LongestSilenceNs() const {
  return std::max(config_.silence_ns, 3 * heartbeat_ns_);
}
std::int64_t SessionLink::GiveUpNs() const {
  if (last_session() == 0) return config_.give_up_ns;
  return std::max(config_.give_up_ns, 2 * LongestSilenceNs());
}

void SessionLink::GiveUp() const {
  const std::string seconds = std::to_string(GiveUpNs() / kNanosPerSecond) + " s";
  if (!refusal_.empty()) {
    throw Error(ExitCode::kTryAgain,
                "the coordinator has refused for " + seconds + ": " + refusal_);
  }
  throw Error(ExitCode::kTryAgain, "no coordinator for " + seconds +
                                       (problem_.empty() ? "" : " (" + problem_ + ")") +
                                       "; start it, or resume the run with ./tetrion up --resume");
}

// The log's part of a problem that lasts: who reads it need not wait for GiveUp.
void SessionLink::SayProblemOnce() {
  if (problem_ == said_problem_) return;
  log::warn("{}", problem_);
  said_problem_ = problem_;
}

void SessionLink::WatchHandshake() {
  const std::string& problem = client_->HandshakeProblem();
  if (problem == handshake_problem_) return;
  handshake_problem_ = problem;
  if (problem.empty()) return;
  problem_ = problem;
  SayProblemOnce();
}

void SessionLink::SendDue() {
  if (client_ != nullptr) WatchHandshake();
  const std::int64_t now_ns = clock_.NowNs();
  const std::int64_t stood_ns = now_ns - std::exchange(worked_ns_, now_ns);
  // This process stood still: that was no silence of the coordinator's. It may have answered since.
  if (stood_ns > kStoodNs) last_answer_ns_ = std::min(now_ns, last_answer_ns_ + stood_ns);
  if (now_ns - last_answer_ns_ > GiveUpNs()) GiveUp();
  if (client_ == nullptr || retired_) return;
  // Answers that wait to be read are no silence: it was this thread that stood still.
  if (now_ns - last_heard_ns_ > silence_ns_ && !client_->Poll(0).socket) {
    const bool was_registered = std::exchange(registered_, false);
    if (was_registered) log::warn("the coordinator is silent; reconnecting");
    refusal_.clear();
    problem_ = handshake_problem_.empty() ? other_run_problem_ : handshake_problem_;
    if (problem_.empty()) {
      problem_ = "the coordinator at " + client_->endpoint() + " does not answer" +
                 (NamesHost(client_->endpoint()) ? ", or its name has no address here" : "");
    }
    if (!was_registered) SayProblemOnce();
    const CoordinatorPlace place = config_.endpoint();
    if (client_->Reopen(place.endpoint.empty() ? client_->endpoint() : place.endpoint)) {
      if (!place.endpoint.empty()) Want(place);
      client_->JoinRun(identity_.run_id);
      other_run_problem_.clear();
      last_heard_ns_ = clock_.NowNs();
      silence_ns_ = 2 * config_.silence_ns;
      if (session_ != 0 || fenced_session_ == 0) register_backoff_.Reset();
    }
    worked_ns_ = clock_.NowNs();  // what the reopening took is silence, no standstill
  }
  if (!registered_) {
    if (!register_backoff_.TryNow()) return;
    Register message = owner_.MakeRegister();
    message.previous_session = last_session();
    message.registration = ++registrations_;
    if (Send(message) && last_session() == 0) ++unanswered_;
    return;
  }
  if (now_ns < next_heartbeat_ns_) return;
  Heartbeat heartbeat = owner_.MakeHeartbeat();
  heartbeat.session = session_;
  Send(heartbeat);
  next_heartbeat_ns_ = now_ns + heartbeat_ns_;
}

bool SessionLink::Send(const Message& message) {
  return client_ != nullptr && client_->Send(message) == SendStatus::kOk;
}

// Whether the place that was told is another run's; throws Error(kTryAgain) where a run was joined.
bool SessionLink::IsOtherRun(const Identity& sender) {
  if (identity_.run_id == 0 || sender.run_id == 0 || sender.run_id == identity_.run_id) {
    return false;
  }
  if (last_session() == 0) {
    if (other_run_problem_.empty()) {
      other_run_problem_ = "another run's coordinator listens at " + client_->endpoint() +
                           ", where that of " + run_ + " did";
      problem_ = other_run_problem_;
      SayProblemOnce();
    }
    return true;
  }
  throw Error(ExitCode::kTryAgain, "the coordinator at " + client_->endpoint() +
                                       " serves another run than " + run_ +
                                       ", which this process belongs to; start it again to join "
                                       "the other run");
}

bool SessionLink::IsMine(const Message& message) const {
  const std::uint64_t session = SessionOf(message);
  if (session == 0 || !(registered_ || retired_)) return false;
  // A fenced member says goodbye under the number that it had.
  const bool farewell = std::holds_alternative<GoodbyeAck>(message) && session == last_session();
  return session == session_ || farewell;
}

void SessionLink::Handle(const Message& message, const Identity& sender) {
  if (IsOtherRun(sender)) return;
  last_heard_ns_ = clock_.NowNs();
  silence_ns_ = LongestSilenceNs();
  if (const auto* registered = std::get_if<Registered>(&message)) {
    HandleRegistered(*registered);
    return;
  }
  if (const auto* refused = std::get_if<Refused>(&message)) {
    HandleRefused(*refused);
    return;
  }
  if (!IsMine(message)) return;  // of an earlier session
  last_answer_ns_ = last_heard_ns_;
  if (std::holds_alternative<Fenced>(message)) {
    EndSession();
  } else if (const auto* ack = std::get_if<HeartbeatAck>(&message)) {
    if (last_heard_ns_ - registered_ns_ >= lease_ns_) register_backoff_.Reset();
    if (ack->epoch != epoch_) {
      registered_ = false;  // the coordinator was restarted: tell it what we hold
      problem_ = "the coordinator was restarted";
    }
    owner_.OnHeartbeatAck(*ack);
    if (ack->drain) owner_.OnRunEnds();
  } else {
    owner_.OnMessage(message);
  }
}

void SessionLink::EndSession() {
  log::warn("session {} was fenced; a new one begins", SessionSequence(session_));
  registered_ = false;
  fenced_session_ = session_;
  session_ = 0;
  problem_ = "fenced";
  owner_.OnFenced();
}

void SessionLink::HandleRegistered(const Registered& registered) {
  if (registered_ && registered.session == session_) return;  // answer to a repeated Register
  const bool renewed = session_ != 0 && registered.session == session_;
  if (session_ != 0 && !renewed) EndSession();  // its lease ended while we were silent
  unanswered_ = 0;  // the coordinator gives a process one session for all of them
  session_ = registered.session;
  epoch_ = registered.epoch;
  run_ = registered.run;
  identity_.run_id = registered.run_id;
  client_->JoinRun(registered.run_id);
  registered_ = true;
  heartbeat_ns_ = static_cast<std::int64_t>(registered.heartbeat_ms) * kNanosPerMilli;
  silence_ns_ = LongestSilenceNs();
  lease_ns_ = static_cast<std::int64_t>(registered.session_lease_ms) * kNanosPerMilli;
  registered_ns_ = last_heard_ns_;
  next_heartbeat_ns_ = 0;
  last_answer_ns_ = last_heard_ns_;
  problem_.clear();
  said_problem_.clear();
  refusal_.clear();
  said_refusal_.clear();
  if (!retired_) owner_.OnRegistered(registered, renewed);
}

void SessionLink::HandleRefused(const Refused& refused) {
  if (unanswered_ > 0) --unanswered_;
  if (retired_) return;
  problem_ = refused.text;
  switch (refused.reason) {
    case RefuseReason::kProtocolVersion:
    case RefuseReason::kConfigMismatch:
      throw Error(ExitCode::kConfig, "the coordinator refused: " + refused.text);
    case RefuseReason::kDraining:
      if (session_ != 0) EndSession();  // its lease ended while we were silent
      if (fenced_session_ != 0) {
        // Fenced as the run ends: no new session, but a last word on what was done.
        retired_ = true;
        owner_.OnRunEnds();
        break;
      }
      [[fallthrough]];
    case RefuseReason::kNoSlot:
      if (refused.reason == RefuseReason::kNoSlot && config_.waits_for_slots) {
        WarnOfRefusal(refused);
        break;
      }
      [[fallthrough]];
    case RefuseReason::kOtherRun:
    case RefuseReason::kRingUnusable:
    case RefuseReason::kTooManySessions:
    case RefuseReason::kImpossible:
      throw Error(ExitCode::kTryAgain, "the coordinator refused: " + refused.text);
    case RefuseReason::kStorePaused:
      last_answer_ns_ = last_heard_ns_;  // it lives, and goes on once the store can be written
      [[fallthrough]];
    case RefuseReason::kLearnerTaken:  // until the dead learner's lease ends
    case RefuseReason::kSlotsAwaited:
    case RefuseReason::kMalformed:
      WarnOfRefusal(refused);
      break;
  }
}

void SessionLink::WarnOfRefusal(const Refused& refused) {
  if (registered_) return;
  refusal_ = refused.text;
  if (said_refusal_ == refusal_) return;
  log::warn("the coordinator refused for now: {}", refusal_);
  said_refusal_ = refusal_;
}

}  // namespace tetrion::wire
