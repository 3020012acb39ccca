#include "services/actor/courier.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "services/common/service_host.h"

namespace tetrion::actor {
namespace {

constexpr int kPollMs = 1;  // rings have no descriptor to wait on
constexpr std::chrono::milliseconds kUnknownPause(10);
constexpr int kMaxReceived = 1024;  // messages of one cycle, so that a stop is seen
constexpr std::int64_t kTotalsEveryNs = 100 * kNanosPerMilli;

}  // namespace

class Courier::Port final : public RowsPort {
 public:
  explicit Port(wire::RowsClient& client) : client_(client) {}
  bool Send(const wire::RowsMessage& message, std::span<const std::byte> payload) override {
    return client_.Send(message, payload) == wire::SendStatus::kOk;
  }

 private:
  wire::RowsClient& client_;
};

Courier::Recorders::Recorders(MetricsRegistry& metrics)
    : link(metrics, "learner"),
      rows(metrics.Counter("tetrion_courier_rows_total", {})),
      resent(metrics.Counter("tetrion_courier_resent_rows_total", {})),
      bytes(metrics.Counter("tetrion_courier_bytes_total", {})),
      impossible(metrics.Counter("tetrion_courier_impossible_answers_total", {})),
      weights(metrics.Counter("tetrion_courier_weights_total", {})),
      weights_refused(metrics.Counter("tetrion_courier_weights_refused_total", {})),
      unacknowledged(metrics.Gauge("tetrion_courier_unacknowledged_rows")) {}

Courier::Courier(const Config& config, WeightsInbox& inbox, MetricsRegistry& metrics,
                 const Clock& clock)
    : config_(config),
      clock_(clock),
      delivery_(config.delivery, inbox, clock),
      recorders_(metrics) {}

void Courier::SetLearner(const std::string& endpoint, const std::string& key) {
  if (endpoint.empty()) return;
  MutexLock lock(mu_);
  learner_ = {.endpoint = "tcp://" + endpoint, .key = key};
}

int Courier::DoWork() {
  if (!Connected()) {
    std::this_thread::sleep_for(kUnknownPause);
    return 0;
  }
  const bool refused = client_->refused();
  if (delivery_.Silent() && client_->Reopen()) {
    // A refusal has been told, and is asked about every 3 s.
    if (!refused) log::warn("learner's rows at {} silent: connecting anew", client_->endpoint());
    delivery_.OnReconnect();
  }
  // What a dead learner said is read before its successor, behind the same address, is spoken to:
  // the rows that it released need not be offered again.
  const int received = Receive();
  if (received == kMaxReceived) return received;
  Port port(*client_);
  const int sent = delivery_.Send(port);
  if (sent + received == 0) static_cast<void>(client_->Poll(kPollMs));
  done_.store(delivery_.Done(), std::memory_order_release);
  if (clock_.NowNs() >= totals_due_ns_) ShowTotals();
  return sent + received;
}

// False until the learner's address is known. Follows a learner that has moved.
bool Courier::Connected() {
  Learner learner;
  {
    MutexLock lock(mu_);
    learner = learner_;
  }
  if (learner.endpoint.empty()) return false;
  if (client_ != nullptr && client_->endpoint() == learner.endpoint &&
      client_->server_key() == learner.key) {
    return true;
  }
  CheckKeys(learner);
  if (client_ == nullptr) {
    Open(learner);
  } else if (client_->Reopen(learner.endpoint, learner.key)) {
    log::info("learner's rows have moved to {}", learner.endpoint);
    opened_ns_ = clock_.NowNs();
    delivery_.OnReconnect();
  }
  return true;
}

// An actor with keys trusts no learner without them; a learner with keys answers no actor without.
void Courier::CheckKeys(const Learner& learner) const {
  const bool have_keys = !config_.keys.empty();
  if (have_keys && learner.key.empty()) {
    throw Error(ExitCode::kTryAgain,
                "this actor has keys, and the learner at " + learner.endpoint +
                    " takes rows without: they are not sent. Give the learner --curve-key and "
                    "--curve-allow, or the actor no --curve-key");
  }
  if (!have_keys && !learner.key.empty()) {
    throw Error(ExitCode::kConfig,
                "the learner at " + learner.endpoint +
                    " takes rows of actors with keys only: give this actor --curve-key and "
                    "--curve-server");
  }
  if (!have_keys) return;
  try {
    static_cast<void>(wire::DecodeKey(learner.key));
  } catch (const Error& error) {
    throw Error(ExitCode::kTryAgain, "the coordinator told no proper key of the learner at " +
                                         learner.endpoint + " (" + error.what() +
                                         "): start the learner again");
  }
}

void Courier::Open(const Learner& learner) {
  client_ = std::make_unique<wire::RowsClient>(
      wire::RowsClient::Config{.endpoint = learner.endpoint,
                               .backoff = {.seed = config_.process},
                               .identity = {.run_id = config_.run_id, .process = config_.process},
                               .security = {.own = config_.keys,
                                            .server_key = learner.key,
                                            .known_from = "the coordinator told us"}},
      clock_);
  opened_ns_ = clock_.NowNs();
  delivery_.OnReconnect();
  log::info("rows go to the learner at {}{}", learner.endpoint,
            config_.keys.empty() ? "" : ", encrypted");
}

int Courier::Receive() {
  for (int received = 0; received < kMaxReceived; ++received) {
    const wire::RowsReceived answer = client_->Receive(0);
    if (answer.status == wire::ReceiveStatus::kTimeout) return received;
    if (answer.status == wire::ReceiveStatus::kWrongVersion) {
      throw Error(ExitCode::kConfig, client_->problem());
    }
    // The address may have gone to the learner of another run.
    if (answer.status != wire::ReceiveStatus::kMessage || answer.sender.run_id != config_.run_id) {
      continue;
    }
    delivery_.On(answer.message, answer.payload.bytes());
  }
  return kMaxReceived;
}

std::string Courier::Problem() const {
  MutexLock lock(mu_);
  return problem_;
}

// Logs a handshake's once for each change.
void Courier::SeeProblem() {
  std::string problem = client_->HandshakeProblem();
  delivery_.SetRefused(client_->refused());
  if (problem != said_problem_) {
    said_problem_ = problem;
    if (!problem.empty()) log::warn("no rows get through: {}", problem);
  }
  const std::int64_t silent_ns = clock_.NowNs() - std::max(delivery_.heard_ns(), opened_ns_);
  if (problem.empty() && silent_ns >= delivery_.usual_silence_ns()) {
    problem = "the learner at " + client_->endpoint() + " has not answered this actor's rows for " +
              std::to_string(silent_ns / kNanosPerSecond) + " s";
  }
  MutexLock lock(mu_);
  problem_ = std::move(problem);
}

void Courier::ShowTotals() {
  totals_due_ns_ = clock_.NowNs() + kTotalsEveryNs;
  SeeProblem();
  const RowsDelivery::Totals totals = delivery_.totals();
  recorders_.link.Set(TotalsOf(client_->stats()));
  recorders_.rows.RaiseTo(static_cast<double>(totals.streams.rows));
  recorders_.resent.RaiseTo(static_cast<double>(totals.streams.resent));
  recorders_.bytes.RaiseTo(static_cast<double>(totals.streams.bytes));
  recorders_.impossible.RaiseTo(static_cast<double>(totals.streams.impossible));
  recorders_.weights.RaiseTo(static_cast<double>(totals.weights.versions));
  recorders_.weights_refused.RaiseTo(static_cast<double>(totals.weights.refused));
  recorders_.unacknowledged.Set(static_cast<double>(totals.unacknowledged));
}

}  // namespace tetrion::actor
