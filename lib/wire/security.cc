#include "lib/wire/security.h"

#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include <algorithm>
#include <exception>
#include <vector>

#include "lib/core/check.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/log.h"

namespace tetrion::wire {
namespace {

constexpr const char* kZapAddress = "inproc://zeromq.zap.01";  // ZeroMQ's RFC 27
constexpr const char* kZapVersion = "1.0";
constexpr const char* kDomain = "tetrion";
constexpr std::size_t kZapFrames = 7;
constexpr int kPollMs = 100;
constexpr int kEventsPerCycle = 1024;
constexpr std::int64_t kLogEveryNs = 5 * kNanosPerSecond;

void SetText(void* socket, int option, const std::string& text) {
  TETRION_CHECK(zmq_setsockopt(socket, option, text.data(), text.size()) == 0,
                "ZeroMQ refused a socket option");
}

void SetNumber(void* socket, int option, int value) {
  TETRION_CHECK(zmq_setsockopt(socket, option, &value, sizeof(value)) == 0,
                "ZeroMQ refused a socket option");
}

// A socket is given its keys in binary: their text is ZeroMQ's only with a final zero.
void SetKey(void* socket, int option, const std::string& key) {
  const KeyBytes bytes = DecodeKey(key);
  TETRION_CHECK(zmq_setsockopt(socket, option, bytes.data(), bytes.size()) == 0,
                "ZeroMQ refused a key");
}

// The frames of one question; empty when none waits.
std::vector<std::string> ReceiveFrames(void* socket) {
  std::vector<std::string> frames;
  zmq_msg_t frame;
  bool more = true;
  while (more) {
    zmq_msg_init(&frame);
    if (zmq_msg_recv(&frame, socket, ZMQ_DONTWAIT) < 0) {
      zmq_msg_close(&frame);
      break;
    }
    more = zmq_msg_more(&frame) != 0;
    frames.emplace_back(static_cast<const char*>(zmq_msg_data(&frame)), zmq_msg_size(&frame));
    zmq_msg_close(&frame);
  }
  return frames;
}

}  // namespace

ServerSecurity ServerSecurity::Make(const CurveKeys& own, const std::string& allow_folder) {
  return {.own = own,
          .allowed = std::make_shared<AllowList>(allow_folder),
          .handshakes = std::make_shared<HandshakeCounts>()};
}

void Secure(void* socket, const ClientSecurity& security) {
  if (!security.on()) return;
  SetKey(socket, ZMQ_CURVE_SERVERKEY, security.server_key);
  SetKey(socket, ZMQ_CURVE_PUBLICKEY, security.own.public_key);
  SetKey(socket, ZMQ_CURVE_SECRETKEY, security.own.secret_key);
}

std::string ClientProblem(Handshake handshake, const std::string& endpoint,
                          const ClientSecurity& security) {
  const std::string at = "the server at " + endpoint;
  constexpr const char* kWantsKeys =
      " refuses peers without keys: give --curve-key and "
      "--curve-server";
  switch (handshake) {
    case Handshake::kAccepted:
      return "";
    case Handshake::kUnknownKey:
      return at + " does not allow our key " + security.own.public_key +
             ": put the NAME.pub of our --curve-key into its --curve-allow folder";
    case Handshake::kNoKeys:  // or kBroken, when the server noticed first and hung up
      return security.on() ? at + " has no keys: start it with --curve-key, or leave ours out"
                           : at + kWantsKeys;
    case Handshake::kWrongKey:
    case Handshake::kBroken:
      break;
  }
  if (!security.on()) {
    return at +
           " did not finish the handshake: it stands still, or wants keys: then give "
           "--curve-key and --curve-server";
  }
  return at + " ended the handshake: its key must be the one that " + security.known_from +
         " (and it needs a --curve-key of its own)";
}

Authenticator::Authenticator(const SocketContext& context, void* socket,
                             const ServerSecurity& security)
    : security_(security),
      monitor_(context, socket),
      questions_(zmq_socket(context.handle(), ZMQ_REP)),
      wake_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (questions_ == nullptr || wake_fd_ < 0) {
    if (questions_ != nullptr) zmq_close(questions_);  // or the context would wait for it for ever
    if (wake_fd_ >= 0) close(wake_fd_);
    throw Error(ExitCode::kTryAgain, "cannot open the authenticator; raise the open-files limit");
  }
  SetNumber(questions_, ZMQ_LINGER, 0);
  TETRION_CHECK(zmq_bind(questions_, kZapAddress) == 0, "a context has one authenticator");
  SetNumber(socket, ZMQ_CURVE_SERVER, 1);
  SetKey(socket, ZMQ_CURVE_SECRETKEY, security_.own.secret_key);
  SetText(socket, ZMQ_ZAP_DOMAIN, kDomain);
  runner_ = std::make_unique<AgentRunner>(*this, [](std::exception_ptr) {
    log::error("the authenticator ended: no new connection is accepted until a restart");
  });
  runner_->Start();
}

Authenticator::~Authenticator() {
  runner_->RequestStop();
  const std::uint64_t one = 1;
  static_cast<void>(!write(wake_fd_, &one, sizeof(one)));
  runner_->Join();
  zmq_close(questions_);
  close(wake_fd_);
}

int Authenticator::DoWork() {
  zmq_pollitem_t items[3] = {{questions_, 0, ZMQ_POLLIN, 0},
                             {monitor_.handle(), 0, ZMQ_POLLIN, 0},
                             {nullptr, wake_fd_, ZMQ_POLLIN, 0}};
  if (zmq_poll(items, 3, kPollMs) <= 0) return 0;
  int work = 0;
  while (work < kEventsPerCycle && Answer()) ++work;
  for (int i = 0; i < kEventsPerCycle; ++i) {
    const std::optional<EndedHandshake> ended = monitor_.Next();
    if (!ended.has_value()) break;
    ++work;
    const Handshake how = ended->how;
    if (how == Handshake::kUnknownKey) continue;  // counted with the answer, which knows the key
    security_.handshakes->Add(how);
    if (how != Handshake::kAccepted) Refused(how, ended->peer.empty() ? "a peer" : ended->peer);
  }
  return work;
}

bool Authenticator::Answer() {
  const std::vector<std::string> frames = ReceiveFrames(questions_);
  if (frames.empty()) return false;
  // Version, request, domain, address, identity, mechanism, key; others ask nobody else.
  const bool known = frames.size() == kZapFrames && frames[0] == kZapVersion;
  std::string user;
  const bool yes = known && Decide(frames[3], frames[5], frames[6], user);
  const std::string request = frames.size() > 1 ? frames[1] : "";
  const std::string answer[6] = {
      kZapVersion, request, yes ? "200" : "400", yes ? "OK" : "unknown key", user, ""};
  for (int i = 0; i < 6; ++i) {
    zmq_send(questions_, answer[i].data(), answer[i].size(),
             ZMQ_DONTWAIT | (i < 5 ? ZMQ_SNDMORE : 0));
  }
  return true;
}

bool Authenticator::Decide(const std::string& address, const std::string& mechanism,
                           const std::string& key, std::string& user) {
  KeyBytes bytes{};
  if (mechanism == "CURVE" && key.size() == bytes.size()) {
    std::copy(key.begin(), key.end(), bytes.begin());
    if (const auto name = security_.allowed->Find(bytes)) {
      user = *name;
      return true;
    }
  }
  char text[kKeyChars + 1] = "";
  zmq_z85_encode(text, bytes.data(), bytes.size());
  security_.handshakes->Add(Handshake::kUnknownKey);
  Refused(Handshake::kUnknownKey, address + " with the key " + text);
  return false;
}

void Authenticator::Refused(Handshake why, const std::string& who) {
  const std::int64_t now_ns = MonotonicClock::Get().NowNs();
  ++unlogged_;
  if (next_log_ns_ != 0 && now_ns < next_log_ns_) return;
  next_log_ns_ = now_ns + kLogEveryNs;
  log::warn("refused {}: {} ({} refused since the last such line)", who, Name(why), unlogged_);
  unlogged_ = 0;
}

}  // namespace tetrion::wire
