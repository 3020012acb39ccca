#include <utility>

#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/shm/shm_dir.h"
#include "services/coordinator/control_agent.h"

// Registration: who may join, with which session and which slots.
namespace tetrion {
namespace {

std::string Joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

// What the member was given that the run has otherwise. Empty: nothing.
std::string Mismatch(const wire::Register& m, const ControlConfig& config) {
  std::vector<Setting> given;
  for (const wire::GivenSetting& setting : m.given) given.push_back({setting.key, setting.value});
  std::vector<std::string> contradictions;
  try {
    contradictions = Contradictions(given, config.run_config);
  } catch (const Error& error) {
    contradictions.push_back(error.what());
  }
  if (!m.shm_dir.empty() && m.shm_dir != config.shm_dir) {
    contradictions.push_back("shm_dir: here " + m.shm_dir + ", the run has " + config.shm_dir);
  }
  if (contradictions.empty()) return "";
  return m.name + " contradicts the run's configuration: " + Joined(contradictions) +
         "; leave these options out, or start another run";
}

// The learner holds its region's flock for life: a region nobody locks outlived its learner.
// Without a region (it is on another host, or just starting) the lease decides.
bool LearnerIsDead(const std::string& shm_dir, std::uint64_t run_id) {
  const std::string name = LearnerName(run_id);
  for (const RegionFile& file : ListRegions(shm_dir)) {
    if (file.run_id == run_id && file.path.ends_with(name)) return !file.locked;
  }
  return false;
}

std::string NoSlotText(const wire::Register& m, std::size_t slots, std::size_t in_use) {
  return "no replay slot for " + m.name + ": it has " + std::to_string(m.workers) +
         " workers, the run has " + std::to_string(slots) + " slots (--max-workers) and " +
         std::to_string(in_use) +
         " are in use; start it with fewer --workers, or start a run with more --max-workers";
}

}  // namespace

// The session a registration is about, when that is alive: the one it names, or, when a
// registration is said again because its answer was lost, the one it made.
Session* ControlAgent::FindRegistered(const wire::PeerId& peer, const wire::Register& m) {
  Session* named = m.previous_session != 0 ? sessions_.Find(m.previous_session) : nullptr;
  if (named != nullptr && named->role == m.role) return named;
  return sessions_.FindSame(m.role, peer, m.nonce >> 1);
}

// False after a refusal.
bool ControlAgent::Welcome(const wire::PeerId& peer, const wire::Register& m,
                           const Session* present) {
  const std::string mismatch = Mismatch(m, config_);
  if (!mismatch.empty()) {
    Refuse(peer, wire::RefuseReason::kConfigMismatch, mismatch);
    return false;
  }
  if (present != nullptr) return true;
  if (draining()) {
    Refuse(
        peer, wire::RefuseReason::kDraining,
        "run " + config_.run + " is ending; resume it with ./tetrion up --resume " + config_.run);
    return false;
  }
  const Session* learner = sessions_.Learner();
  if (m.role == wire::Role::kLearner && learner != nullptr &&
      LearnerIsDead(config_.shm_dir, run_id_)) {
    EndSession(learner->number, "its process died");
    learner = nullptr;
  }
  if (m.role == wire::Role::kLearner && learner != nullptr) {
    const std::int64_t left_ns = std::max<std::int64_t>(0, learner->expires_ns - clock_.NowNs());
    Refuse(peer, wire::RefuseReason::kLearnerTaken,
           "run " + config_.run + " has a learner (" + learner->name + ", session " +
               std::to_string(learner->number) + "); its lease ends in at most " +
               std::to_string(left_ns / kNanosPerMilli) + " ms unless it is alive");
    return false;
  }
  return true;
}

wire::Registered ControlAgent::Describe(const Session& session,
                                        const std::vector<std::int32_t>& slots) const {
  wire::Registered registered;
  registered.session = session.number;
  registered.epoch = epoch_;
  registered.run = config_.run;
  registered.run_id = run_id_;
  registered.run_folder = config_.run_folder;
  registered.run_config = config_text_;
  registered.shm_dir = config_.shm_dir;
  registered.slots = slots;
  registered.heartbeat_ms = config_.heartbeat_ms;
  registered.session_lease_ms = config_.session_lease_ms;
  if (session.role == wire::Role::kLearner) {
    registered.version_first = version_first_;
    registered.version_limit = version_limit_;
  }
  return registered;
}

void ControlAgent::On(const wire::PeerId& peer, const wire::Register& m) {
  Session* session = FindRegistered(peer, m);
  if (!Welcome(peer, m, session) || !CanStore()) return;
  const bool is_new = session == nullptr;
  const std::uint64_t number = is_new ? sessions_.next_number() : session->number;
  const std::uint32_t workers = m.role == wire::Role::kActor ? m.workers : 0;
  const auto slots = slots_.Assign(number, workers, m.rings);
  if (!slots.has_value()) {
    Refuse(peer, wire::RefuseReason::kNoSlot, NoSlotText(m, slots_.slots().size(), slots_.InUse()));
    return;
  }
  std::uint64_t freed = 0;
  if (is_new) {
    session = &OpenSession(peer, m);
  } else if (m.previous_session == number) {
    std::vector<HeldTokens> held;
    for (const wire::HeldRange& range : m.held) {
      held.push_back({range.first_id, range.attempt, Bits256::From(range.held)});
    }
    freed = ledger_.ReRegister(number, held);
  }
  session->peer = peer;
  session->name = m.name;
  session->http_endpoint = m.http_endpoint;
  sessions_.Renew(*session);
  slots_ticket_ = Persist({.sessions = {*session}, .slots = slots_.slots()}, true);
  if (m.role == wire::Role::kLearner) version_ticket_ = slots_ticket_;
  log::info("{} {} as session {}{}", m.name, is_new ? "registered" : "registered again", number,
            freed > 0 ? ", " + std::to_string(freed) + " tokens are free again" : "");
  ReplyAfter(slots_ticket_, peer, number, Describe(*session, *slots));
  if (m.role == wire::Role::kLearner) SendRings();
}

}  // namespace tetrion
