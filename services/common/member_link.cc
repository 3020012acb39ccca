#include "services/common/member_link.h"

#include "lib/core/address.h"
#include "lib/core/log.h"
#include "lib/run/program.h"
#include "services/common/service_host.h"

namespace tetrion {
namespace {

constexpr int kLeaveTries = 25;
constexpr int kLeavePollMs = 20;
// For the answer to a registration. Without a coordinator, too.
constexpr std::int64_t kUnbuiltAnswerNs = kNanosPerSecond;

std::string ToldHttp(const MemberOptions& options, const std::string& http_address) {
  if (http_address.empty()) return "";
  if (options.http_advertise.empty() && IsElsewhere(options.coordinator) &&
      IsLoopback(http_address)) {
    log::info(
        "no scraper is told of the pages at {}: this machine alone reaches them, and the "
        "coordinator is called by an address that other machines have; give --http-bind "
        "0.0.0.0:PORT or --http-advertise HOST[:PORT]",
        http_address);
    return "";
  }
  return Advertised("--http-advertise", options.http_advertise, http_address);
}

}  // namespace

MemberConfig MemberConfigOf(const MemberOptions& options, const std::string& http_address) {
  return {.name = options.name,
          .http_endpoint = ToldHttp(options, http_address),
          .shm_dir = options.shm_dir,
          .drain_timeout_ns = options.drain_timeout_s * kNanosPerSecond,
          .given = GivenOf(options),
          .link = LinkConfigOf(options)};
}

MemberLink::MemberLink(const MemberConfig& config, GoodbyeTimes times, wire::SessionOwner& owner,
                       const std::atomic<bool>& drain, const Clock& clock)
    : config_(config),
      times_(times),
      drain_(drain),
      clock_(clock),
      link_(config.link, owner, clock) {}

std::string MemberLink::Problem() const {
  MutexLock lock(problem_mu_);
  return problem_;
}

wire::Register MemberLink::Registration(wire::Role role) const {
  return {.role = role,
          .name = config_.name,
          .revision = Revision(),
          .given = config_.given,
          .http_endpoint = config_.http_endpoint,
          .shm_dir = config_.shm_dir,
          .rows_endpoint = config_.rows_endpoint,
          .rows_key = config_.rows_key};
}

void MemberLink::CheckSettings(const wire::Registered& registered) {
  if (!told_) run_config_ = registered.run_config;
  told_ = true;
  CheckSameSettings(run_config_, registered.run_config);
}

void MemberLink::PublishState(const std::string& own) {
  if (config_.traffic != nullptr) config_.traffic->Set(TotalsOf(link_.stats()));
  const std::string problem = link_.registered() ? own : link_.problem();
  MutexLock lock(problem_mu_);
  problem_ = problem;
}

void MemberLink::StartDrain(bool built) {
  drain_until_ns_ = clock_.NowNs() + config_.drain_timeout_ns;
  if (built || !link_.registering()) {
    if (!built) link_.Retire();
    Enter(built ? Phase::kDraining : Phase::kDone);
    return;
  }
  StartGoodbye();
  goodbye_until_ns_ = clock_.NowNs() + kUnbuiltAnswerNs;
}

void MemberLink::StartGoodbye() {
  goodbye_until_ns_ = clock_.NowNs() + times_.give_up_ns;
  link_.Retire();
  Enter(Phase::kGoodbye);
}

void MemberLink::SayGoodbye(std::uint64_t session, std::uint64_t env_steps) {
  if (!Is(Phase::kGoodbye)) return;
  const std::int64_t now_ns = clock_.NowNs();
  // A session that is known late has the whole time, too.
  if (session != 0 && next_goodbye_ns_ == 0) goodbye_until_ns_ = now_ns + times_.give_up_ns;
  if (now_ns >= goodbye_until_ns_ || (session == 0 && !link_.registering())) {
    Enter(Phase::kDone);
  } else if (session != 0 && now_ns >= next_goodbye_ns_) {
    link_.Send(wire::Goodbye{.session = session, .env_steps = env_steps});
    next_goodbye_ns_ = now_ns + times_.repeat_ns;
  }
}

void MemberLink::LeaveAtOnce() {
  if (link_.session() == 0 || !(Running() || Draining())) return;
  StartGoodbye();
  for (int i = 0; i < kLeaveTries && !Done(); ++i) {
    SayGoodbye(link_.session(), /*env_steps=*/0);
    link_.DoWork(kLeavePollMs);
  }
}

void MemberLink::OnGoodbyeAck() {
  if (Is(Phase::kGoodbye)) Enter(Phase::kDone);
}

void MemberLink::OnFenced() {
  if (!Running()) link_.Retire();
}

}  // namespace tetrion
