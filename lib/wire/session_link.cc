#include "lib/wire/session_link.h"

#include <chrono>
#include <thread>
#include <utility>
#include <variant>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/core/philox.h"

namespace tetrion::wire {
namespace {

// Messages handled per cycle: a flood must not keep the owner from its other duties.
constexpr int kMaxMessagesPerCycle = 256;

constexpr Backoff::Config kConnectBackoff = {.first_ns = 20 * kNanosPerMilli,
                                             .max_ns = 2 * kNanosPerSecond};

Backoff::Config WithSeed(Backoff::Config config, std::uint64_t seed) {
  config.seed = seed;
  return config;
}

// Differs between processes of one host (seed: the process id) and between restarts.
std::uint64_t MakeNonce(std::uint64_t seed) {
  const auto now_ns = static_cast<std::uint64_t>(MonotonicClock::Get().NowNs());
  const PhiloxBlock draw = PhiloxDraw(seed, now_ns, 0, PhiloxPurpose::kSampler);
  return (static_cast<std::uint64_t>(draw.word[0]) << 32 | draw.word[1]) | 2;
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
      connect_backoff_(clock, WithSeed(kConnectBackoff, config_.backoff_seed)),
      register_backoff_(clock, WithSeed({}, config_.backoff_seed + 1)),
      nonce_(MakeNonce(config_.backoff_seed)),
      last_heard_ns_(clock.NowNs()),
      last_answer_ns_(clock.NowNs()) {}

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
    if (received.status == ReceiveStatus::kMessage) Handle(received.message);
  }
}

void SessionLink::Connect() {
  if (!connect_backoff_.TryNow()) return;
  const std::string endpoint = config_.endpoint();
  if (endpoint.empty()) return;
  client_ = std::make_unique<ControlClient>(
      ControlClient::Config{.endpoint = endpoint,
                            .backoff = WithSeed({}, config_.backoff_seed + 2)},
      clock_);
  last_heard_ns_ = clock_.NowNs();
}

void SessionLink::SendDue() {
  const std::int64_t now_ns = clock_.NowNs();
  if (now_ns - last_answer_ns_ > config_.give_up_ns) {
    throw Error(ExitCode::kTryAgain,
                "no coordinator for " + std::to_string(config_.give_up_ns / kNanosPerSecond) +
                    " s (" + problem_ +
                    "); start it, or resume the run with ./tetrion up --resume");
  }
  if (client_ == nullptr || retired_) return;
  if (now_ns - last_heard_ns_ > config_.silence_ns) {
    if (registered_) log::warn("the coordinator is silent; reconnecting");
    registered_ = false;
    problem_ = "the coordinator at " + client_->endpoint() + " does not answer";
    const std::string endpoint = config_.endpoint();
    if (client_->Reopen(endpoint.empty() ? client_->endpoint() : endpoint)) {
      last_heard_ns_ = now_ns;
      register_backoff_.Reset();
    }
  }
  if (!registered_) {
    if (!register_backoff_.TryNow()) return;
    Register message = owner_.MakeRegister();
    message.previous_session = session_;
    message.nonce = nonce_;
    Send(message);
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

void SessionLink::Handle(const Message& message) {
  last_heard_ns_ = clock_.NowNs();
  if (const auto* registered = std::get_if<Registered>(&message)) {
    HandleRegistered(*registered);
    return;
  }
  if (const auto* refused = std::get_if<Refused>(&message)) {
    HandleRefused(*refused);
    return;
  }
  if (!IsMine(SessionOf(message))) return;  // of an earlier session
  last_answer_ns_ = last_heard_ns_;
  if (std::holds_alternative<Fenced>(message)) {
    log::warn("session {} was fenced; registering anew", session_);
    registered_ = false;
    session_ = 0;
    problem_ = "fenced";
    owner_.OnFenced();
  } else if (const auto* ack = std::get_if<HeartbeatAck>(&message)) {
    if (ack->epoch != epoch_) {
      registered_ = false;  // the coordinator was restarted: tell it what we hold
      problem_ = "the coordinator was restarted";
    }
    owner_.OnHeartbeatAck(*ack);
  } else {
    owner_.OnMessage(message);
  }
}

void SessionLink::HandleRegistered(const Registered& registered) {
  if (registered_ && registered.session == session_) return;  // answer to a repeated Register
  const bool renewed = session_ != 0 && registered.session == session_;
  if (session_ != 0 && !renewed) owner_.OnFenced();
  session_ = registered.session;
  epoch_ = registered.epoch;
  registered_ = true;
  heartbeat_ns_ = static_cast<std::int64_t>(registered.heartbeat_ms) * kNanosPerMilli;
  next_heartbeat_ns_ = 0;
  last_answer_ns_ = last_heard_ns_;
  problem_.clear();
  register_backoff_.Reset();
  owner_.OnRegistered(registered, renewed);
}

void SessionLink::HandleRefused(const Refused& refused) {
  problem_ = refused.text;
  switch (refused.reason) {
    case RefuseReason::kProtocolVersion:
    case RefuseReason::kConfigMismatch:
      throw Error(ExitCode::kConfig, "the coordinator refused: " + refused.text);
    case RefuseReason::kNoSlot:
    case RefuseReason::kDraining:
      throw Error(ExitCode::kTryAgain, "the coordinator refused: " + refused.text);
    case RefuseReason::kLearnerTaken:  // until the dead learner's lease ends
    case RefuseReason::kMalformed:
      if (!registered_) log::warn("the coordinator refused for now: {}", refused.text);
      break;
  }
}

}  // namespace tetrion::wire
