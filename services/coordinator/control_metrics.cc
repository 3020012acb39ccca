#include "services/coordinator/control_metrics.h"

#include "services/common/service_host.h"

namespace tetrion::coordinator {
namespace {

// In the order of wire::Message.
constexpr std::array<const char*, std::variant_size_v<wire::Message>> kKinds = {
    "register",    "registered", "refused",     "grant_request", "grant",         "report_batch",
    "report_ack",  "abandon",    "abandon_ack", "heartbeat",     "heartbeat_ack", "ring_list",
    "rings_ready", "rings_ack",  "ring_gone",   "goodbye",       "goodbye_ack",   "fenced"};

// In the order of wire::RefuseReason, from 1.
constexpr std::array<const char*, ControlMetrics::kRefuseReasons> kRefusals = {
    "protocol_version",  "config_mismatch", "no_slot",       "learner_taken",
    "draining",          "malformed",       "other_run",     "ring_unusable",
    "too_many_sessions", "impossible",      "slots_awaited", "store_paused"};
static_assert(static_cast<std::size_t>(wire::RefuseReason::kStorePaused) == kRefusals.size());

// In the order of SessionEnd.
constexpr std::array<const char*, 4> kEnds = {"goodbye", "died", "lease", "refused"};
static_assert(static_cast<std::size_t>(SessionEnd::kRefused) + 1 == kEnds.size());

HotCounter* Refusals(MetricsRegistry& registry, const char* reason) {
  return &registry.Counter("tetrion_coordinator_refused_total", {reason});
}

HotCounter* Tokens(MetricsRegistry& registry, const char* event) {
  return &registry.Counter("tetrion_coordinator_tokens_total", {event});
}

}  // namespace

ControlMetrics::ControlMetrics(MetricsRegistry& registry, const std::string& env)
    : issued_(Tokens(registry, "issued")),
      done_(Tokens(registry, "done")),
      abandoned_(Tokens(registry, "abandoned")),
      freed_(Tokens(registry, "freed")),
      duplicate_(Tokens(registry, "duplicate")),
      refused_(Tokens(registry, "refused")),
      fenced_(Tokens(registry, "fenced")),
      impostor_(Refusals(registry, "other_process")),
      outstanding_(&registry.Gauge("tetrion_coordinator_tokens_outstanding")),
      actors_(&registry.Gauge("tetrion_coordinator_actors")),
      oldest_seconds_(&registry.Gauge("tetrion_coordinator_leases_oldest_seconds")),
      replies_(&registry.Gauge("tetrion_coordinator_replies_waiting")),
      store_queued_(&registry.Gauge("tetrion_coordinator_store_queued")),
      store_paused_(&registry.Gauge("tetrion_coordinator_store_paused")),
      store_log_(&registry.Gauge("tetrion_coordinator_store_log_bytes")),
      return_(&registry.Histogram("tetrion_episode_return", {env})),
      length_(&registry.Histogram("tetrion_episode_length_steps", {env})),
      lines_(&registry.Histogram("tetrion_episode_lines", {env})),
      return_mean_(&registry.Gauge("tetrion_episode_return_mean", {env})),
      length_mean_(&registry.Gauge("tetrion_episode_length_steps_mean", {env})),
      lines_mean_(&registry.Gauge("tetrion_episode_lines_mean", {env})),
      link_(registry, "members", LinkRecorders::End::kListens),
      handshakes_(registry, "members") {
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    request_seconds_[i] = &registry.Histogram("tetrion_coordinator_request_seconds", {kKinds[i]});
  }
  for (std::size_t i = 0; i < kEnds.size(); ++i) {
    ended_[i] = &registry.Counter("tetrion_coordinator_sessions_ended_total", {kEnds[i]});
  }
  for (std::size_t i = 0; i < kRefuseReasons; ++i) refusals_[i] = Refusals(registry, kRefusals[i]);
}

void ControlMetrics::Episodes(std::span<const wire::EpisodeReport> episodes) {
  using Report = wire::EpisodeReport;
  return_->ObserveEach(episodes, [](const Report& e) { return double{e.episode_return}; });
  length_->ObserveEach(episodes,
                       [](const Report& e) { return static_cast<double>(e.length_steps); });
  lines_->ObserveEach(episodes, [](const Report& e) { return static_cast<double>(e.lines); });
}

void ControlMetrics::Refused(wire::RefuseReason reason) {
  refusals_.at(static_cast<std::size_t>(reason) - 1)->Increment();
}

void ControlMetrics::Update(const Gauges& gauges, const EpisodeWindow& window,
                            const wire::LinkStats& link) {
  const LedgerCounts& tokens = gauges.tokens;
  issued_->RaiseTo(static_cast<double>(tokens.issued - before_.issued));
  done_->RaiseTo(static_cast<double>(tokens.done - before_.done));
  abandoned_->RaiseTo(static_cast<double>(tokens.abandoned - before_.abandoned));
  freed_->RaiseTo(static_cast<double>(tokens.freed - before_.freed));
  duplicate_->RaiseTo(static_cast<double>(tokens.duplicates - before_.duplicates));
  refused_->RaiseTo(static_cast<double>(tokens.refused - before_.refused));
  outstanding_->Set(static_cast<double>(tokens.Outstanding()));
  actors_->Set(static_cast<double>(gauges.actors));
  oldest_seconds_->Set(gauges.oldest_seconds);
  replies_->Set(static_cast<double>(gauges.replies));
  store_queued_->Set(static_cast<double>(gauges.store_queued));
  store_paused_->Set(gauges.store_paused ? 1 : 0);
  store_log_->Set(static_cast<double>(gauges.store_log_bytes));
  return_mean_->Set(window.MeanReturn());
  length_mean_->Set(window.MeanLength());
  lines_mean_->Set(window.MeanLines());
  link_.Set(TotalsOf(link));
}

}  // namespace tetrion::coordinator
