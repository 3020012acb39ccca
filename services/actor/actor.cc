#include "services/actor/actor.h"

#include <utility>

#include "lib/core/log.h"
#include "services/common/heartbeat_stats.h"

namespace tetrion::actor {

Actor::Actor(ActorOptions options, SignalWatcher& signals)
    : options_(std::move(options)),
      host_(
          metrics_, options_.member.http_bind,
          [this] { return MemberReadiness(Problem(), host_.LinkCycleAgeNs()); },
          [&signals] { signals.RequestDrain(); }),
      workers_(options_, outbox_, metrics_,
               [this](std::exception_ptr error) { host_.Fail(error); }) {
  metrics_.OnScrape([this] { workers_.RefreshMetrics(); });
  MemberConfig member = MemberConfigOf(options_.member, host_.http_address());
  member.traffic = &link_metrics_;
  link_ = std::make_unique<PlayLink>(
      PlayLink::Config{.member = std::move(member), .workers = workers_.count()}, LinkHooks(),
      outbox_, signals.drain_flag());
}

PlayLink::Hooks Actor::LinkHooks() {
  return {.build =
              [this](const wire::Registered& registered, std::vector<wire::RingInfo>& rings,
                     std::vector<CreditQueue*>& queues) {
                SetUpMemberLogging(options_.member, registered.run);
                workers_.Build(registered, link_->process(), rings, queues);
              },
          .stats = [this] { return Stats(); },
          .env_steps = [this] { return workers_.EnvSteps(); },
          .workers_drained = [this] { return workers_.Drained(); },
          .close_rings = [this] { workers_.Close(); },
          .rows_left = [this] { return workers_.RowsLeft(); },
          .learner_is_at = [this](const std::string& rows,
                                  const std::string& key) { workers_.LearnerIsAt(rows, key); }};
}

void Actor::Run() {
  host_.Run(*link_,
            {.done = [this] { return link_->Done(); }, .stop_rest = [this] { workers_.Stop(); }});
  workers_.LogClosed();
  log::info("drained: {} steps, {} episodes acknowledged, {} fenced", workers_.EnvSteps(),
            link_->acknowledged(), link_->fenced());
}

std::string Actor::Problem() const {
  std::string problem = link_->Problem();
  return problem.empty() ? workers_.Problem() : problem;
}

std::vector<wire::Stat> Actor::Stats() {
  FigureValues<kActorFigures> values = workers_.Figures();
  values["acknowledged"] = static_cast<double>(link_->acknowledged());
  values["fenced"] = static_cast<double>(link_->fenced());
  std::vector<wire::Stat> stats;
  AddStats(kActorFigures, values.all(), stats);
  return stats;
}

}  // namespace tetrion::actor
