#include "services/coordinator/control_context.h"

#include <utility>

#include "lib/core/log.h"

namespace tetrion::coordinator {
namespace {

constexpr std::int64_t kOddEveryNs = kNanosPerSecond;
constexpr std::int64_t kSessionLinesNs = 10 * kNanosPerSecond;

}  // namespace

ControlContext::ControlContext(const ControlConfig& control_config, const StoredRun& stored,
                               StoreAgent& store_agent, ControlMetrics& control_metrics,
                               const Clock& the_clock)
    : config(control_config),
      epoch(stored.epoch),
      run_id(stored.run_id),
      store(store_agent),
      metrics(control_metrics),
      clock(the_clock),
      server(config.bind, stored.run_id, config.security),
      book(config, stored, store, clock) {}

int ControlContext::SendCommitted() {
  return replies_.TakeCommitted(store.committed(), [this](const ReplyQueue::Reply& reply) {
    if (reply.session == 0 || book.sessions.Find(reply.session) != nullptr) {
      Send(reply.peer, reply.message);
    }
  });
}

void ControlContext::ReplyAfter(std::uint64_t ticket, const wire::PeerId& peer,
                                std::uint64_t session, wire::Message message) {
  // None overtakes another: what a member is told of its tokens is true in this order only.
  if (replies_.empty() && ticket <= store.committed()) {
    Send(peer, message);
  } else if (!replies_.Add({ticket, peer, session, std::move(message)})) {
    LogOdd("more replies wait for the store than are kept; their members ask again");
  }
}

void ControlContext::Send(const wire::PeerId& peer, const wire::Message& message) {
  // A peer that is gone or does not read asks again: every request is repeated until answered.
  static_cast<void>(server.Send(peer, message));
}

void ControlContext::Refuse(const wire::PeerId& peer, wire::RefuseReason reason,
                            const std::string& text) {
  metrics.Refused(reason);
  Send(peer, wire::Refused{reason, text});
}

wire::HeartbeatAck ControlContext::AckFor(const Session& session) {
  wire::HeartbeatAck ack = {.session = session.number,
                            .epoch = epoch,
                            .drain = draining(),
                            .episodes = book.state.episodes(),
                            .mean_return = book.state.window().MeanReturn(),
                            .mean_lines = book.state.window().MeanLines()};
  if (session.role == wire::Role::kLearner) {
    ack.version_limit = book.versions.Promised(store.committed());
  } else if (const Session* learner = book.sessions.Learner(); learner != nullptr) {
    ack.rows_endpoint = learner->rows_endpoint;
    ack.rows_key = learner->rows_key;
  }
  return ack;
}

void ControlContext::LogOdd(const std::string& what) {
  if (last_odd_log_ns_ != 0 && clock.NowNs() - last_odd_log_ns_ < kOddEveryNs) return;
  last_odd_log_ns_ = clock.NowNs();
  log::warn("{}", what);
}

void ControlContext::LogSession(const std::string& what) {
  LogLeftOutWhenDue();
  if (++session_lines_ <= config.session_lines) log::info("{}", what);
}

void ControlContext::LogLeftOut() {
  session_lines_since_ns_ = clock.NowNs();
  const int left_out = std::exchange(session_lines_, 0) - config.session_lines;
  if (left_out > 0) log::info("{} lines on sessions were left out here", left_out);
}

void ControlContext::LogLeftOutWhenDue() {
  if (clock.NowNs() - session_lines_since_ns_ >= kSessionLinesNs) LogLeftOut();
}

}  // namespace tetrion::coordinator
