#include "services/learner/resident_lanes.h"

#include <utility>
#include <vector>

#include "lib/core/log.h"
#include "services/common/heartbeat_stats.h"
#include "services/common/service_host.h"

namespace tetrion::learner {
namespace {

double Seconds(const std::atomic<std::int64_t>& ns) {
  return static_cast<double>(ns.load(std::memory_order_relaxed)) * 1e-9;
}

double Count(const std::atomic<std::uint64_t>& counter) {
  return static_cast<double>(counter.load(std::memory_order_relaxed));
}

MemberConfig WithTraffic(MemberConfig member, LinkRecorders& traffic) {
  member.traffic = &traffic;
  return member;
}

}  // namespace

ResidentLanes::ResidentLanes(const Config& config, ResidentAgent::Parts parts, ReplayGate& gate,
                             DeviceRows& rows, cuda::Stream& stream, MetricsRegistry& metrics,
                             const std::atomic<bool>& drain,
                             const std::function<void(std::exception_ptr)>& on_error)
    : credits_(static_cast<std::size_t>(config.groups)),
      agent_(config.agent, std::move(parts), gate, rows, stream, credits_, outbox_),
      link_metrics_(metrics, "coordinator_resident"),
      link_({.member = WithTraffic(config.member, link_metrics_),
             .workers = config.groups,
             .agent_name = "resident-link"},
            LinkHooks(), outbox_, drain),
      agent_runner_(agent_, on_error),
      link_runner_(link_, on_error),
      rows_(metrics.Counter("tetrion_learner_resident_rows_total")),
      env_steps_(metrics.Counter("tetrion_learner_resident_env_steps_total")),
      wait_token_(metrics.Counter("tetrion_learner_resident_wait_seconds_total", {"token"})),
      wait_weights_(metrics.Counter("tetrion_learner_resident_wait_seconds_total", {"weights"})),
      wait_replay_(metrics.Counter("tetrion_learner_resident_wait_seconds_total", {"replay"})) {}

PlayLink::Hooks ResidentLanes::LinkHooks() {
  return {.build =
              [this](const wire::Registered&, std::vector<wire::RingInfo>&,
                     std::vector<CreditQueue*>& queues) {
                for (CreditQueue& credits : credits_) queues.push_back(&credits);
              },
          .stats = [this] { return Stats(); },
          .env_steps = [this] { return agent_.counters().env_steps.load(); },
          .workers_drained = [this] { return agent_.Drained() || !agent_runner_.Running(); },
          .close_rings = [] {}};
}

std::vector<wire::Stat> ResidentLanes::Stats() {
  std::vector<wire::Stat> stats;
  AddStats(kActorFigures, Figures().all(), stats);
  return stats;
}

FigureValues<kActorFigures> ResidentLanes::Figures() const {
  const ResidentCounters& counters = agent_.counters();
  FigureValues<kActorFigures> values;
  values["wait_token_s"] = Seconds(counters.wait_token_ns);
  values["wait_ring_s"] = Seconds(counters.wait_replay_ns);
  values["wait_weights_s"] = Seconds(counters.wait_weights_ns);
  values["workers"] = static_cast<double>(credits_.size());
  values["rows"] = Count(counters.rows);
  values["episodes"] = Count(counters.episodes);
  values["not_finite_rows"] = Count(counters.not_finite);
  values["acknowledged"] = static_cast<double>(link_.acknowledged());
  values["fenced"] = static_cast<double>(link_.fenced());
  return values;
}

void ResidentLanes::Start(MetricsRegistry& metrics) {
  ShowCycles(metrics, agent_runner_);
  ShowCycles(metrics, link_runner_);
  agent_runner_.Start();
  link_runner_.Start();
}

void ResidentLanes::Stop() {
  link_runner_.RequestStop();
  agent_runner_.RequestStop();
  link_runner_.Join();
  agent_runner_.Join();
}

void ResidentLanes::LogDrained() const {
  const ResidentCounters& counters = agent_.counters();
  log::info("drained: {} steps, {} episodes acknowledged, {} fenced, {} rows of resident lanes",
            counters.env_steps.load(), link_.acknowledged(), link_.fenced(), counters.rows.load());
}

void ResidentLanes::RefreshMetrics() {
  const ResidentCounters& counters = agent_.counters();
  rows_.RaiseTo(Count(counters.rows));
  env_steps_.RaiseTo(Count(counters.env_steps));
  wait_token_.RaiseTo(Seconds(counters.wait_token_ns));
  wait_weights_.RaiseTo(Seconds(counters.wait_weights_ns));
  wait_replay_.RaiseTo(Seconds(counters.wait_replay_ns));
}

}  // namespace tetrion::learner
