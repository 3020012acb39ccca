#include "services/actor/rows_delivery.h"

#include <algorithm>
#include <variant>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/wire/rows_socket.h"

namespace tetrion::actor {
namespace {

constexpr std::int64_t kPingEveryNs = 500 * kNanosPerMilli;
constexpr std::int64_t kSilenceNs = 3 * kNanosPerSecond;
constexpr std::int64_t kMaxSilenceNs = 24 * kNanosPerSecond;
constexpr int kMaxDoublings = 3;
static_assert(kSilenceNs << kMaxDoublings == kMaxSilenceNs);
static_assert(kMaxSilenceNs < wire::kHeartbeatTimeoutMs * kNanosPerMilli, "we part first");
constexpr int kMaxHalvings = 16;  // of 64 KiB: one row, whatever its length
// Longer than a reconnection takes, so that a learner which only moved is not taken for dead.
constexpr std::int64_t kGoneSilences = 3;

}  // namespace

RowsDelivery::RowsDelivery(const Config& config, WeightsInbox& inbox, const Clock& clock)
    : compress_(config.compress),
      inbox_(inbox),
      clock_(clock),
      weights_(config.weights_bytes, inbox, clock),
      heard_ns_(clock.NowNs()),
      connected_ns_(heard_ns_),
      usual_silence_ns_(kSilenceNs) {}

int RowsDelivery::Send(RowsPort& port) {
  const std::int64_t now_ns = clock_.NowNs();
  const std::int64_t gone_ns =
      std::max(kGoneSilences * usual_silence_ns_, SilenceNs() + kSilenceNs);
  inbox_.TellLearnerGone(now_ns - heard_ns_ >= gone_ns);
  int sent = 0;
  // First: rows would take all the room that a slow uplink leaves.
  if (now_ns >= ping_due_ns_ && port.Send(wire::RowsPing{pings_ + 1})) {
    ++pings_;
    ping_due_ns_ = now_ns + kPingEveryNs;
    ++sent;
  }
  sent += weights_.Send(port);
  const RowStream::Pace pace = {
      .halvings = halvings_, .pings = pings_, .unmentioned_ns = SilenceNs() * 2 / 3};
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    RowStream& stream = streams_[(turn_ + i) % streams_.size()];
    stream.SetPace(pace);
    sent += stream.Send(port, compress_ ? &packer_ : nullptr);
  }
  if (!streams_.empty()) turn_ = (turn_ + 1) % streams_.size();
  return sent;
}

void RowsDelivery::On(const wire::RowsMessage& message, std::span<const std::byte> payload) {
  const std::int64_t now_ns = clock_.NowNs();
  const std::int64_t silent_ns = now_ns - std::max(heard_ns_, connected_ns_);
  heard_ns_ = now_ns;
  if (const auto* ack = std::get_if<wire::RowsAck>(&message)) {
    OnAck(*ack, silent_ns);
  } else if (const auto* opened = std::get_if<wire::RowsOpened>(&message)) {
    for (RowStream& stream : streams_) stream.On(*opened);
  } else if (const auto* unknown = std::get_if<wire::StreamUnknown>(&message)) {
    for (RowStream& stream : streams_) {
      if (unknown->stream != 0 && stream.stream() == unknown->stream) stream.OnUnknown();
    }
  } else if (const auto* chunk = std::get_if<wire::WeightsChunk>(&message)) {
    weights_.On(*chunk, payload);
  } else if (const auto* gone = std::get_if<wire::WeightsGone>(&message)) {
    weights_.On(*gone);
  } else if (const auto* none = std::get_if<wire::WeightsRefused>(&message)) {
    weights_.On(*none);
    log::debug("the learner gives no weights: {}; asked again", none->text);
  } else if (const auto* refused = std::get_if<wire::OpenRefused>(&message)) {
    OnRefused(*refused);
  }
}

void RowsDelivery::OnAck(const wire::RowsAck& ack, std::int64_t silent_ns) {
  bool progress = false;
  for (const wire::StreamAck& one : ack.streams) {
    for (RowStream& stream : streams_) progress |= stream.On(one, ack.answered);
  }
  weights_.OnNewest(ack.weights_version);
  if (!progress) return;
  progress_ = true;
  doublings_ = 0;
  usual_silence_ns_ = std::clamp(2 * silent_ns, kSilenceNs, kMaxSilenceNs);
  // Twice as many rows will take no longer than half of what the learner may be silent.
  if (silent_ns <= kSilenceNs / 4) halvings_ = std::max(0, halvings_ - 1);
}

void RowsDelivery::OnRefused(const wire::OpenRefused& refused) const {
  const bool mine = std::any_of(streams_.begin(), streams_.end(), [&](const RowStream& stream) {
    return stream.path() == refused.path && stream.stream() == 0 && !stream.done();
  });
  if (!mine) return;
  const std::string text =
      "the learner does not take the rows " + refused.path + ": " + refused.text;
  if (refused.final) throw Error(ExitCode::kTryAgain, text);
  log::debug("{}; asked again", text);
}

void RowsDelivery::OnReconnect() {
  if (!progress_ && !refused_) {
    doublings_ = std::min(doublings_ + 1, kMaxDoublings);
    halvings_ = std::min(halvings_ + 1, kMaxHalvings);
  }
  progress_ = false;
  refused_ = false;
  connected_ns_ = clock_.NowNs();
  ping_due_ns_ = 0;
  for (RowStream& stream : streams_) stream.Reopen();
  weights_.AskAgain();
}

std::int64_t RowsDelivery::SilenceNs() const {
  if (refused_) return kSilenceNs;
  return std::min(usual_silence_ns_ << doublings_, kMaxSilenceNs);
}

bool RowsDelivery::Silent() const {
  return clock_.NowNs() - std::max(heard_ns_, connected_ns_) >= SilenceNs();
}

bool RowsDelivery::Done() const {
  return std::all_of(streams_.begin(), streams_.end(), [](const auto& s) { return s.done(); });
}

RowsDelivery::Totals RowsDelivery::totals() const {
  Totals totals = {.weights = weights_.stats()};
  for (const RowStream& stream : streams_) {
    totals.streams.rows += stream.stats().rows;
    totals.streams.resent += stream.stats().resent;
    totals.streams.bytes += stream.stats().bytes;
    totals.streams.impossible += stream.stats().impossible;
    totals.unacknowledged += stream.unacknowledged();
  }
  return totals;
}

}  // namespace tetrion::actor
