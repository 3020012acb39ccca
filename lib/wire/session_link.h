#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "lib/core/clock.h"
#include "lib/wire/backoff.h"
#include "lib/wire/socket.h"

namespace tetrion::wire {

// What an actor or a learner does on behalf of its session. All calls come from
// SessionLink::DoWork.
class SessionOwner {
 public:
  virtual ~SessionOwner() = default;
  // First message, and again after every reconnect; the link fills previous_session.
  virtual Register MakeRegister() = 0;
  // The session stands. `renewed`: it is the one from before, its tokens and rings are kept.
  virtual void OnRegistered(const Registered& registered, bool renewed) = 0;
  // The session ended behind our back: cut lanes, drop tokens. The link registers anew.
  virtual void OnFenced() = 0;
  // The link fills session.
  virtual Heartbeat MakeHeartbeat() = 0;
  virtual void OnHeartbeatAck(const HeartbeatAck& ack) = 0;
  // The coordinator ends the run: drain. Said with each of its answers, and when it gives a fenced
  // member no new session.
  virtual void OnRunEnds() = 0;
  // Everything else that belongs to the session.
  virtual void OnMessage(const Message& message) = 0;
};

// Where a run's coordinator listens.
struct CoordinatorPlace {
  // NOLINTNEXTLINE(google-explicit-constructor): an address by itself is a place.
  CoordinatorPlace(std::string address, std::uint64_t id = 0, std::string name = "")
      : endpoint(std::move(address)), run_id(id), run(std::move(name)) {}

  std::string endpoint;          // empty while unknown
  std::uint64_t run_id = 0;      // the run to join there; 0: the one that is there
  std::string run;               // its name, for people
  std::string why_unknown = "";  // for people, where `endpoint` is empty
};

// The client's half of a session: registers, renews the lease, notices a silent or restarted
// coordinator and registers again under the same number, starts a new session when fenced. The
// delays between registrations grow until a session has stood for a whole lease, so that a member
// which is fenced again and again asks ever more rarely. Ends with Error(kTryAgain) when the
// coordinator serves another run than the one that was joined. A place that an earlier coordinator
// told may be another run's by now: that one is never joined, and the place asked for again.
//
// Thread role: one link thread calls everything.
class SessionLink {
 public:
  struct Config {
    // Asked before every (re)connection: a restarted coordinator may have moved.
    std::function<CoordinatorPlace()> endpoint;
    // Nothing heard for so long, and for three heartbeats: reconnect. The new connection gets twice
    // the time, for it may be a coordinator to which thousands return at once.
    std::int64_t silence_ns = 3 * kNanosPerSecond;
    // Nothing heard for so long, and for six heartbeats: Error(kTryAgain).
    std::int64_t give_up_ns = 120 * kNanosPerSecond;
    // Identity::process, of which the delays' seeds are made; 0: drawn at random.
    std::uint64_t process = 0;
    // Without a free slot the member asks again: those of its dead predecessor come free.
    bool waits_for_slots = false;
    std::shared_ptr<SocketContext> context;  // shared with other links; null: its own
    ClientSecurity security;                 // none: plain
  };

  SessionLink(Config config, SessionOwner& owner, const Clock& clock = MonotonicClock::Get());

  // One cycle: receives (blocks at most `timeout_ms` for the first message), registers or
  // heartbeats when due. Throws Error: kConfig when refused for good (both values in the text),
  // kTryAgain when refused for good in this process, or after give_up_ns of silence.
  void DoWork(int timeout_ms);

  // False while there is no coordinator or it has not answered. Sends are dropped then; senders
  // repeat until answered.
  bool registered() const { return registered_; }
  // A first registration is unanswered: a session may stand that this process does not know yet.
  bool registering() const { return unanswered_ > 0; }
  std::uint64_t session() const { return session_; }
  // The session for a goodbye: the present one, or the one that was fenced last.
  std::uint64_t last_session() const { return session_ != 0 ? session_ : fenced_session_; }
  const Identity& identity() const { return identity_; }
  bool Send(const Message& message);
  // Stops heartbeats and registrations: call it with the goodbye, or when a session ends that was
  // about to say goodbye. The coordinator would answer a heartbeat behind a goodbye with Fenced. A
  // session that still begins is for a goodbye alone: its owner is not told of it.
  void Retire() { retired_ = true; }

  // Why not `registered`, for /readyz.
  const std::string& problem() const { return problem_; }
  LinkStats stats() const { return client_ ? client_->stats() : LinkStats{}; }

 private:
  void Connect();
  void SendDue();
  void Handle(const Message& message, const Identity& sender);
  void EndSession();
  void HandleRegistered(const Registered& registered);
  void HandleRefused(const Refused& refused);
  void WarnOfRefusal(const Refused& refused);
  [[noreturn]] void GiveUp() const;
  void WatchHandshake();
  void SayProblemOnce();
  bool IsOtherRun(const Identity& sender);
  void Want(const CoordinatorPlace& place);
  std::int64_t LongestSilenceNs() const;
  std::int64_t GiveUpNs() const;
  bool IsMine(const Message& message) const;

  const Config config_;
  SessionOwner& owner_;
  const Clock& clock_;
  std::unique_ptr<ControlClient> client_;
  Identity identity_;
  Backoff connect_backoff_;
  Backoff register_backoff_;
  bool registered_ = false;
  bool retired_ = false;
  int unanswered_ = 0;                // registrations, before there was a session
  std::uint64_t session_ = 0;         // 0: none yet, or fenced
  std::uint64_t registrations_ = 0;   // sent
  std::uint64_t fenced_session_ = 0;  // last one; 0: never fenced
  std::string run_;                   // name of the run that was joined, or is to be
  std::uint64_t epoch_ = 0;
  std::int64_t heartbeat_ns_ = kNanosPerSecond;
  std::int64_t lease_ns_ = 0;
  std::int64_t registered_ns_ = 0;  // when the present session began or was renewed
  std::int64_t silence_ns_;         // that the present connection may be silent
  std::int64_t last_heard_ns_;      // any message
  std::int64_t last_answer_ns_;     // a message of a standing session, or the start
  std::int64_t worked_ns_;          // last look at what is due
  std::int64_t next_heartbeat_ns_ = 0;
  std::string problem_ = "no coordinator yet";
  std::string said_problem_;       // by SayProblemOnce
  std::string handshake_problem_;  // empty: none
  std::string refusal_;            // for now, of a coordinator that answers; empty: none
  std::string said_refusal_;       // the last one that was logged
  std::string other_run_problem_;  // another run's coordinator answers; empty: none
};

}  // namespace tetrion::wire
