#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "lib/core/agent.h"
#include "lib/wire/allow_list.h"
#include "lib/wire/curve_keys.h"
#include "lib/wire/handshakes.h"
#include "lib/wire/socket_context.h"

namespace tetrion::wire {

// What a socket is given so that its connections are encrypted by CURVE and both ends know each
// other's keys. Without it (the default) a socket is plain. A client that knows the server's public
// key cannot be fooled by another server; a server lets in the keys of its AllowList and no others.

// Of a socket that connects.
struct ClientSecurity {
  CurveKeys own;
  std::string server_key;                           // Z85; of the server that is connected to
  std::string known_from = "--curve-server names";  // for people: where server_key is from
  bool on() const { return !own.empty(); }
};

// Of a socket that binds. Copies share the list and the counts, which thus survive a socket that is
// opened anew.
struct ServerSecurity {
  CurveKeys own;
  std::shared_ptr<AllowList> allowed;
  std::shared_ptr<HandshakeCounts> handshakes;
  bool on() const { return !own.empty(); }

  // Throws Error(kUsage) when `allow_folder` cannot be read.
  static ServerSecurity Make(const CurveKeys& own, const std::string& allow_folder);
};

// What CURVE adds to a message on the wire: limits of message sizes are raised by it.
inline constexpr int kCurveOverheadBytes = 64;

// Before the socket connects. Does nothing when `security` is off.
void Secure(void* socket, const ClientSecurity& security);
// What was wrong with a handshake, from a client's point of view: one sentence for people.
std::string ClientProblem(Handshake handshake, const std::string& endpoint,
                          const ClientSecurity& security);

// Answers, for the server sockets of one context, which keys may connect (ZeroMQ's ZAP), counts how
// handshakes end, and logs refused ones, a line every five seconds at most. Should its thread fail,
// questions stay unanswered and no new connection comes about.
//
// Thread roles: made before `socket` is bound and destroyed before it is closed, by the socket's
// thread; a thread of its own does the rest. One to a context.
class Authenticator final : public Agent {
 public:
  // Makes `socket` a CURVE server. `security` is on; the context outlives this.
  Authenticator(const SocketContext& context, void* socket, const ServerSecurity& security);
  ~Authenticator() override;
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;

  std::string name() const override { return "authenticator"; }
  int DoWork() override;

 private:
  // One question of ZeroMQ's; false when none waits.
  bool Answer();
  bool Decide(const std::string& address, const std::string& mechanism, const std::string& key,
              std::string& user);
  void Refused(Handshake why, const std::string& who);

  const ServerSecurity security_;
  HandshakeMonitor monitor_;
  void* questions_ = nullptr;
  int wake_fd_ = -1;
  std::int64_t next_log_ns_ = 0;
  std::uint64_t unlogged_ = 0;  // refused since the last line
  std::unique_ptr<AgentRunner> runner_;
};

}  // namespace tetrion::wire
