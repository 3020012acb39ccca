#include "services/learner/rows_agent.h"

#include <optional>
#include <utility>
#include <variant>

#include "lib/core/counter.h"
#include "lib/core/log.h"

namespace tetrion::learner {
namespace {

constexpr int kIdlePollMs = 50;
// While rows wait for ingest: how late an actor may hear that they were taken.
constexpr int kBusyPollMs = 1;
constexpr int kMessagesPerCycle = 64;  // before acknowledgements are due again
constexpr std::int64_t kComplainEveryNs = 10 * kNanosPerSecond;

}  // namespace

RowsAgent::RowsAgent(const RemoteStreams::Config& config, Parts parts, RemoteBoard& board,
                     const Clock& clock)
    : socket_(std::move(parts.socket)),
      shelf_(parts.weights, clock),
      streams_(config, board, parts.ingest, *this, clock),
      clock_(clock) {}

int RowsAgent::DoWork() {
  int messages = 0;
  socket_->Poll(streams_.AwaitsRelease() ? kBusyPollMs : kIdlePollMs);
  for (; messages < kMessagesPerCycle; ++messages) {
    const wire::RowsReceived received = socket_->Receive();
    if (received.status == wire::ReceiveStatus::kTimeout) break;
    Receive(received);
  }
  if (messages > 0) heard_ns_ = clock_.NowNs();
  if (clock_.NowNs() - heard_ns_ < WeightsShelf::kForgetNs) shelf_.Refresh();
  streams_.Tick(shelf_.newest());
  socket_->GiveCredit(streams_.CreditBytes());
  MutexLock lock(mu_);
  link_stats_ = socket_->stats();
  handshakes_ = socket_->handshakes();
  hang_ups_.store(socket_->hang_ups(), std::memory_order_relaxed);
  return 1 + messages;
}

void RowsAgent::Receive(const wire::RowsReceived& received) {
  if (received.status != wire::ReceiveStatus::kMessage) {
    // An actor of another release learns from any answer which protocol is spoken here.
    if (received.status == wire::ReceiveStatus::kWrongVersion) Send(received.peer, wire::RowsAck{});
    if (clock_.NowNs() < next_complaint_ns_) return;
    next_complaint_ns_ = clock_.NowNs() + kComplainEveryNs;
    log::warn("remote rows: {}", socket_->problem());
    return;
  }
  if (const auto* get = std::get_if<wire::WeightsGet>(&received.message)) {
    GiveWeights(received, *get);
  } else if (std::holds_alternative<wire::RowsPing>(received.message) &&
             !streams_.Serves(received.sender)) {
    Send(received.peer, wire::RowsAck{});  // a sign of life; weights come with a stream
  }
  streams_.On(received.peer, received.sender, received.message, received.payload.bytes());
}

void RowsAgent::GiveWeights(const wire::RowsReceived& received, const wire::WeightsGet& get) {
  if (!streams_.Serves(received.sender)) {
    AddRelaxed<std::uint64_t>(weights_refused_, 1);
    return Send(received.peer,
                wire::WeightsRefused{get.version,
                                     "weights go to actors whose rows this learner takes, and it "
                                     "has no stream of this one: open a stream first; an actor "
                                     "that cannot must be of this learner's run"});
  }
  const std::optional<WeightsShelf::Answer> answer = shelf_.Get(received.sender.process, get);
  if (!answer) return;
  if (socket_->Send(received.peer, answer->message, answer->payload) == wire::SendStatus::kOk) {
    AddRelaxed<std::uint64_t>(weights_bytes_, answer->payload.size());
  }
}

void RowsAgent::Send(const wire::PeerId& peer, const wire::RowsMessage& message) {
  (void)socket_->Send(peer, message);  // lost: every message is said again
}

wire::LinkStats RowsAgent::link_stats() const {
  MutexLock lock(mu_);
  return link_stats_;
}

wire::HandshakeTotals RowsAgent::handshakes() const {
  MutexLock lock(mu_);
  return handshakes_;
}

}  // namespace tetrion::learner
