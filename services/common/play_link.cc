#include "services/common/play_link.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "lib/core/log.h"
#include "lib/run/run_config.h"

namespace tetrion {
namespace {

constexpr int kPollMs = 2;
constexpr std::int64_t kResendNs = kNanosPerSecond;
// Finished episodes wait so long for company, or until so many are there: a report costs the
// coordinator a row in its store.
constexpr std::int64_t kGatherNs = 20 * kNanosPerMilli;
constexpr std::size_t kGatherEpisodes = 256;
static_assert(wire::kMaxReports == kMaxBatchEpisodes);
constexpr std::int64_t kAcksNs = 5 * kNanosPerSecond;
constexpr MemberLink::GoodbyeTimes kGoodbye = {.repeat_ns = kResendNs / 5,
                                               .give_up_ns = 5 * kNanosPerSecond};

}  // namespace

PlayLink::PlayLink(Config config, Hooks hooks, Outbox& outbox, const std::atomic<bool>& drain,
                   const Clock& clock)
    : config_(std::move(config)),
      hooks_(std::move(hooks)),
      outbox_(outbox),
      clock_(clock),
      member_(config_.member, kGoodbye, *this, drain, clock),
      link_(member_.link()),
      reports_(clock, kResendNs),
      abandons_(clock, kResendNs),
      requests_(clock, kResendNs) {}

int PlayLink::DoWork() {
  if (member_.DrainIsAsked()) StartDrain();  // before a session that it would only end again
  if (member_.Done()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMs));
    return 0;
  }
  link_.DoWork(kPollMs);
  member_.PublishState("");
  if (!built_) {
    member_.SayGoodbye(link_.session(), /*env_steps=*/0);
    return 1;
  }
  Collect();
  SendReports();
  if (member_.Running()) {
    Feed();
    RequestTokens();
  } else {
    Drain();
  }
  return 1;
}

wire::Register PlayLink::MakeRegister() {
  HeldTokens::Listed held = held_.ListHeld();
  wire::Register registration = member_.Registration(wire::Role::kActor);
  registration.held = std::move(held.ranges);
  registration.held_below = held.below;
  registration.workers = static_cast<std::uint32_t>(config_.workers);
  registration.rings = rings_;
  return registration;
}

void PlayLink::OnRegistered(const wire::Registered& registered, bool renewed) {
  if (!built_) {
    hooks_.build(registered, rings_, queues_);
    const RunConfig config = RunConfigFromText(registered.run_config);
    low_water_ = CreditLowWater(static_cast<std::uint64_t>(config.lanes));
    built_ = true;
  }
  member_.CheckSettings(registered);
  if (hooks_.learner_is_at) hooks_.learner_is_at(registered.rows_endpoint, registered.rows_key);
  for (std::size_t i = 0; i < rings_.size() && i < registered.slots.size(); ++i) {
    rings_[i].slot = registered.slots[i];
  }
  for (wire::RingInfo& ring : rings_) ring.session = registered.session;
  rings_acked_ = rings_.empty();
  next_rings_ns_ = 0;
  // What was sent before may be lost; it is repeated under the session it belongs to.
  reports_.ResendAll();
  abandons_.ResendAll();
  requests_.ResendAll();
  log::info("session {} {} with {} held tokens", wire::SessionSequence(registered.session),
            renewed ? "renewed" : "begun", held_.held());
}

void PlayLink::OnFenced() {
  member_.OnFenced();
  std::uint64_t lost = episodes_.size();
  reports_.ResendAll();
  reports_.SendDue([&lost](const wire::ReportBatch& batch) {
    lost += batch.episodes.size();
    return true;
  });
  fenced_.fetch_add(lost, std::memory_order_relaxed);
  reports_.StartAnew();
  abandons_.StartAnew();
  requests_.StartAnew();
  episodes_.clear();
  abandoned_.clear();
  held_.Clear();
  for (CreditQueue* queue : queues_) queue->Fence();
}

wire::Heartbeat PlayLink::MakeHeartbeat() {
  const char* phase = member_.Running() ? "running" : wire::kPhaseDraining;
  return {.phase = phase,
          .env_steps = built_ ? hooks_.env_steps() : 0,
          .stats = built_ ? hooks_.stats() : std::vector<wire::Stat>{}};
}

void PlayLink::OnHeartbeatAck(const wire::HeartbeatAck& ack) {
  if (hooks_.learner_is_at) hooks_.learner_is_at(ack.rows_endpoint, ack.rows_key);
}

void PlayLink::OnRunEnds() {
  if (member_.Running()) StartDrain();
}

void PlayLink::OnMessage(const wire::Message& message) {
  if (const auto* grant = std::get_if<wire::Grant>(&message)) {
    requests_.Acknowledge(grant->request, [&](const wire::GrantRequest&) {
      for (const wire::GrantedRange& range : grant->ranges) held_.Add(range);
    });
  } else if (const auto* ack = std::get_if<wire::ReportAck>(&message)) {
    reports_.Acknowledge(ack->batch, [&](const wire::ReportBatch& batch) {
      for (const wire::EpisodeReport& episode : batch.episodes) {
        held_.Settle(episode.token_id, episode.attempt);
      }
      acknowledged_.fetch_add(batch.episodes.size() - ack->refused, std::memory_order_relaxed);
      fenced_.fetch_add(ack->refused, std::memory_order_relaxed);
    });
  } else if (const auto* given_back = std::get_if<wire::AbandonAck>(&message)) {
    abandons_.Acknowledge(given_back->request, [&](const wire::Abandon& abandon) {
      for (const wire::HeldRange& range : abandon.tokens) {
        for (std::uint64_t i = 0; i < wire::kRangeTokens; ++i) {
          if (((range.held[i / 8] >> (i % 8)) & 1U) != 0) {
            held_.Settle(range.first_id + i, range.attempt);
          }
        }
      }
    });
  } else if (std::holds_alternative<wire::RingsAck>(message)) {
    rings_acked_ = true;
  } else if (std::holds_alternative<wire::GoodbyeAck>(message)) {
    member_.OnGoodbyeAck();
  }
}

// Empties the workers' outbox; drops what belongs to an earlier session.
void PlayLink::Collect() {
  const std::size_t before = episodes_.size();
  outbox_.Take(episodes_, abandoned_);
  const auto fresh = episodes_.begin() + static_cast<std::ptrdiff_t>(before);
  const auto stale = std::remove_if(fresh, episodes_.end(), [this](const auto& episode) {
    return !held_.Holds(episode.token_id, episode.attempt);
  });
  fenced_.fetch_add(static_cast<std::uint64_t>(episodes_.end() - stale), std::memory_order_relaxed);
  episodes_.erase(stale, episodes_.end());
  for (auto& [reason, tokens] : abandoned_) {
    std::erase_if(tokens, [this](const Token& t) { return !held_.Holds(t.id, t.attempt); });
    GiveBack(reason, tokens);
  }
  abandoned_.clear();
}

void PlayLink::GiveBack(const std::string& reason, const std::vector<Token>& tokens) {
  std::vector<wire::HeldRange> groups = HeldTokens::Group(tokens);
  for (std::size_t at = 0; at < groups.size(); at += wire::kMaxRanges) {
    const std::size_t end = std::min(groups.size(), at + wire::kMaxRanges);
    wire::Abandon abandon = {.request = abandons_.NextNumber(), .reason = reason};
    abandon.tokens.assign(groups.begin() + static_cast<std::ptrdiff_t>(at),
                          groups.begin() + static_cast<std::ptrdiff_t>(end));
    const std::uint64_t number = abandon.request;
    abandons_.Add(number, std::move(abandon));
  }
}

// Whether collected episodes should go out now.
bool PlayLink::ReportIsDue() {
  if (episodes_.empty()) {
    gather_since_ns_ = 0;
    return false;
  }
  if (gather_since_ns_ == 0) gather_since_ns_ = clock_.NowNs();
  return episodes_.size() >= kGatherEpisodes || !member_.Running() ||
         clock_.NowNs() - gather_since_ns_ >= kGatherNs;
}

void PlayLink::BatchReports() {
  for (std::size_t at = 0; at < episodes_.size(); at += wire::kMaxReports) {
    const std::size_t end = std::min(episodes_.size(), at + wire::kMaxReports);
    wire::ReportBatch batch = {.batch = reports_.NextNumber()};
    batch.episodes.assign(episodes_.begin() + static_cast<std::ptrdiff_t>(at),
                          episodes_.begin() + static_cast<std::ptrdiff_t>(end));
    const std::uint64_t number = batch.batch;
    reports_.Add(number, std::move(batch));
  }
  episodes_.clear();
  gather_since_ns_ = 0;
}

void PlayLink::SendReports() {
  if (ReportIsDue()) BatchReports();
  if (!link_.registered()) return;
  const auto send = [this](auto& message) {
    message.session = link_.session();
    if constexpr (requires { message.env_steps; }) message.env_steps = hooks_.env_steps();
    return link_.Send(message);
  };
  reports_.SendDue(send);
  abandons_.SendDue(send);
  requests_.SendDue(send);
  if (!rings_acked_ && clock_.NowNs() >= next_rings_ns_) {
    link_.Send(wire::RingsReady{.session = link_.session(), .rings = rings_});
    next_rings_ns_ = clock_.NowNs() + kResendNs;
  }
}

// Tops the workers' credits up from the pool.
void PlayLink::Feed() {
  for (CreditQueue* queue : queues_) {
    const std::size_t have = queue->size();
    if (have >= low_water_ || held_.pool_size() == 0) continue;
    scratch_.clear();
    held_.TakeFromPool(2 * low_water_ - have, scratch_);
    queue->Push(scratch_);
  }
}

void PlayLink::RequestTokens() {
  if (!link_.registered() || !requests_.empty() || reports_.size() > kMaxUnackedBatches) return;
  const std::size_t want = 2 * low_water_ * queues_.size();
  if (held_.pool_size() >= want) return;
  const std::size_t ranges = (want - held_.pool_size()) / wire::kRangeTokens + 1;
  const std::uint64_t number = requests_.NextNumber();
  requests_.Add(number,
                {.request = number,
                 .ranges = static_cast<std::uint32_t>(std::min(ranges, wire::kMaxRanges / 2))});
}

void PlayLink::StartDrain() {
  log::info("draining");
  member_.StartDrain(built_);
  if (!built_) return;
  requests_.Clear();
  GiveBack("drain", held_.TakePool());
  for (CreditQueue* queue : queues_) GiveBack("drain", queue->Drain());
}

void PlayLink::WarnOfLateDrain() const {
  const std::uint64_t left = hooks_.rows_left ? hooks_.rows_left() : 0;
  const std::string rows =
      left > 0 ? ": the learner has not taken " + std::to_string(left) + " rows" : "";
  log::warn("the time of --drain-timeout is over before the workers were done{}", rows);
}

// After the workers' last rows: everything settled or given back, then the goodbye.
void PlayLink::Drain() {
  if (member_.Draining()) {
    const bool drained = hooks_.workers_drained();
    if (!drained && !member_.DrainIsLate()) return;
    Collect();
    SendReports();
    hooks_.close_rings();
    if (!drained && acks_until_ns_ == 0) WarnOfLateDrain();
    acks_until_ns_ = acks_until_ns_ == 0 ? clock_.NowNs() + kAcksNs : acks_until_ns_;
    const bool late = clock_.NowNs() >= acks_until_ns_;
    if (!late && !(reports_.empty() && abandons_.empty())) return;
    if (late) log::warn("{} reports were not acknowledged in time", reports_.size());
    member_.StartGoodbye();
  }
  // A fenced session has nothing left, but its process still tells how many steps it made.
  member_.SayGoodbye(link_.last_session(), hooks_.env_steps());
}

}  // namespace tetrion
