#include "lib/wire/socket.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/wire/zmq_socket.h"

namespace tetrion::wire {
namespace {

constexpr int kServerSendHighWaterMark = 128;
constexpr int kServerBacklog = 4096;
constexpr int kClientSendHighWaterMark = 1024;
// None: libzmq 4.3 aborts the process (!_io_error in stream_engine_base.cpp) when a peer hangs up
// while its queue is full and the answer to one of its pings falls due. The server's owner watches
// its memory.
constexpr int kReceiveHighWaterMark = 0;
constexpr int kHandshakeMs = 5000;
constexpr int kReconnectMs = 100;  // the engine's own attempts; doubled each time up to
constexpr int kReconnectMaxMs = 800;
constexpr int kKeepAliveIdleS = 5;  // of a silent TCP connection, before the kernel asks
constexpr int kKeepAliveEveryS = 2;
constexpr int kKeepAliveTries = 3;
constexpr std::string_view kIpcScheme = "ipc://";

// The options both ends share.
void SetCommonOptions(void* socket, int send_high_water_mark, bool secured) {
  SetOption(socket, ZMQ_LINGER, 0);
  SetOption(socket, ZMQ_SNDHWM, send_high_water_mark);
  SetOption(socket, ZMQ_RCVHWM, kReceiveHighWaterMark);
  SetMaxMessageBytes(socket, kMaxMessageBytes + (secured ? kCurveOverheadBytes : 0));
  SetOption(socket, ZMQ_HANDSHAKE_IVL, kHandshakeMs);
  // Not ZeroMQ's own heartbeats: each of them cancels timers, and ZeroMQ 4.3 looks for a timer
  // along the list of all connections' timers.
  SetOption(socket, ZMQ_TCP_KEEPALIVE, 1);
  SetOption(socket, ZMQ_TCP_KEEPALIVE_IDLE, kKeepAliveIdleS);
  SetOption(socket, ZMQ_TCP_KEEPALIVE_INTVL, kKeepAliveEveryS);
  SetOption(socket, ZMQ_TCP_KEEPALIVE_CNT, kKeepAliveTries);
}

}  // namespace

struct ControlServer::Impl : Socket {
  explicit Impl(const ServerSecurity& security) : Socket(ZMQ_ROUTER, nullptr) {
    if (security.on()) authenticator = std::make_unique<Authenticator>(*context, socket, security);
  }
  std::unique_ptr<Authenticator> authenticator;  // null: plain
};

// Holds "<socket path>.lock" for as long as the server listens.
class ControlServer::PathLock {
 public:
  // Throws Error(kUsage) when another process holds it.
  explicit PathLock(const std::string& socket_path)
      : socket_path_(socket_path), path_(socket_path + ".lock") {
    constexpr int kTries = 8;  // a predecessor may remove the file between our open and our flock
    for (int i = 0; i < kTries; ++i) {
      fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
      if (fd_ < 0) break;
      if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
        close(fd_);
        throw Error(ExitCode::kUsage, "another coordinator listens at " + socket_path +
                                          ": stop it, or choose another --bind");
      }
      struct stat ours = {}, named = {};
      const bool same = fstat(fd_, &ours) == 0 && lstat(path_.c_str(), &named) == 0 &&
                        ours.st_ino == named.st_ino && ours.st_dev == named.st_dev;
      if (same) return;
      close(fd_);
    }
    throw Error(ExitCode::kUsage, "cannot lock " + path_ + ": " + std::strerror(errno) +
                                      "; the folder of the socket must exist and be writable");
  }
  // After the server's socket is closed, which ZeroMQ leaves in the file system.
  ~PathLock() {
    unlink(socket_path_.c_str());
    unlink(path_.c_str());
    close(fd_);
  }
  // From the bound socket, which ZeroMQ makes as the umask says. Throws Error(kUsage).
  void KeepOthersOut() const {
    if (chmod(socket_path_.c_str(), 0600) == 0) return;
    throw Error(ExitCode::kUsage, "cannot close " + socket_path_ +
                                      " to other users: " + std::strerror(errno) +
                                      "; choose a --bind in a folder of your own");
  }
  PathLock(const PathLock&) = delete;
  PathLock& operator=(const PathLock&) = delete;

 private:
  const std::string socket_path_, path_;
  int fd_ = -1;
};

ControlServer::ControlServer(const std::string& endpoint, std::uint64_t run_id,
                             const ServerSecurity& security)
    : run_id_(run_id), security_(security) {
  if (endpoint.rfind(kIpcScheme, 0) == 0) {
    path_lock_ = std::make_unique<PathLock>(endpoint.substr(kIpcScheme.size()));
  }
  Bind(endpoint);
}

void ControlServer::Bind(const std::string& endpoint) {
  impl_ = std::make_unique<Impl>(security_);
  void* socket = impl_->socket;
  SetCommonOptions(socket, kServerSendHighWaterMark, security_.on());
  SetOption(socket, ZMQ_ROUTER_MANDATORY, 1);
  SetOption(socket, ZMQ_BACKLOG, kServerBacklog);
  AllowIpv6(socket, endpoint);
  if (zmq_bind(socket, endpoint.c_str()) != 0) {
    const int error = zmq_errno();
    throw Error(ExitCode::kUsage,
                "cannot bind the control socket to " + endpoint + ": " + zmq_strerror(error) +
                    (error == EADDRINUSE
                         ? "; another process listens there: stop it, or choose a free port with "
                           "--bind tcp://127.0.0.1:0"
                         : "; give --bind an address of this machine, like tcp://127.0.0.1:0"));
  }
  endpoint_ = BoundEndpoint(socket);
  if (path_lock_ != nullptr) path_lock_->KeepOthersOut();
}

void ControlServer::Rebind() {
  const std::string endpoint = endpoint_;
  impl_.reset();
  malloc_trim(0);  // the freed queues go back to the kernel, not to our heap
  try {
    Bind(endpoint);
  } catch (const Error& error) {
    throw Error(ExitCode::kTryAgain, error.what());
  }
}

ControlServer::~ControlServer() = default;

HandshakeTotals ControlServer::handshakes() const {
  return security_.on() ? security_.handshakes->Totals() : HandshakeTotals{};
}

Readiness ControlServer::Poll(int timeout_ms, int extra_fd) {
  return PollSocket(impl_->socket, timeout_ms, extra_fd);
}

std::optional<ControlServer::Received> ControlServer::Receive() {
  Frame id, body;
  if (!id.Receive(impl_->socket)) return std::nullopt;
  Received received;
  received.peer.assign(reinterpret_cast<const char*>(id.data()), id.size());
  if (id.More() && body.Receive(impl_->socket)) {
    received.bytes.assign(body.data(), body.data() + body.size());
    if (body.More()) {
      SkipRest(body, impl_->socket);
      received.bytes.clear();  // not a message of ours: Decode will say too short
    }
  }
  ++stats_.messages_in;
  stats_.bytes_in += received.bytes.size();
  return received;
}

SendStatus ControlServer::Send(const PeerId& peer, const Message& message) {
  const std::vector<std::byte> bytes = Encode(message, {.run_id = run_id_});
  if (zmq_send(impl_->socket, peer.data(), peer.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
    ++stats_.dropped_out;
    return zmq_errno() == EAGAIN ? SendStatus::kFull : SendStatus::kNoPeer;
  }
  if (zmq_send(impl_->socket, bytes.data(), bytes.size(), ZMQ_DONTWAIT) < 0) {
    ++stats_.dropped_out;
    return SendStatus::kNoPeer;
  }
  ++stats_.messages_out;
  stats_.bytes_out += bytes.size();
  return SendStatus::kOk;
}

struct ControlClient::Impl : Socket {
  explicit Impl(const Config& config) : Socket(ZMQ_DEALER, config.context) {
    if (config.context == nullptr) monitor = std::make_unique<HandshakeMonitor>(*context, socket);
  }
  std::unique_ptr<HandshakeMonitor> monitor;  // null: of a shared context
};

ControlClient::ControlClient(const Config& config, const Clock& clock)
    : config_(config), backoff_(clock, config.backoff) {
  Open();
}

ControlClient::~ControlClient() = default;

void ControlClient::Open() {
  impl_.reset();
  impl_ = std::make_unique<Impl>(config_);
  SetCommonOptions(impl_->socket, kClientSendHighWaterMark, config_.security.on());
  Secure(impl_->socket, config_.security);
  SetOption(impl_->socket, ZMQ_RECONNECT_IVL, kReconnectMs);
  SetOption(impl_->socket, ZMQ_RECONNECT_IVL_MAX, kReconnectMaxMs);
  AllowIpv6(impl_->socket, config_.endpoint);
  if (zmq_connect(impl_->socket, config_.endpoint.c_str()) != 0) {
    throw Error(ExitCode::kUsage,
                "cannot connect to the coordinator at '" + config_.endpoint +
                    "': " + zmq_strerror(zmq_errno()) +
                    "; the address looks like tcp://127.0.0.1:41234 or ipc:///path");
  }
}

SendStatus ControlClient::Send(const Message& message) {
  const std::vector<std::byte> bytes = Encode(message, config_.identity);
  if (zmq_send(impl_->socket, bytes.data(), bytes.size(), ZMQ_DONTWAIT) < 0) {
    ++stats_.dropped_out;
    return SendStatus::kFull;
  }
  ++stats_.messages_out;
  stats_.bytes_out += bytes.size();
  return SendStatus::kOk;
}

Readiness ControlClient::Poll(int timeout_ms, int extra_fd) {
  return PollSocket(impl_->socket, timeout_ms, extra_fd);
}

ReceiveResult ControlClient::Receive(int timeout_ms) {
  Frame frame;
  if (!frame.Receive(impl_->socket)) {
    if (timeout_ms <= 0 || !Poll(timeout_ms).socket || !frame.Receive(impl_->socket)) return {};
  }
  ++stats_.messages_in;
  stats_.bytes_in += frame.size();
  DecodeResult decoded;
  decoded.status = DecodeStatus::kBadIdentifier;
  if (frame.More()) {
    SkipRest(frame, impl_->socket);
  } else {
    decoded = Decode({frame.data(), frame.size()});
  }
  if (decoded.status == DecodeStatus::kOk) {
    backoff_.Reset();
    return {ReceiveStatus::kMessage, std::move(decoded.message), decoded.sender};
  }
  ++stats_.malformed;
  if (decoded.status == DecodeStatus::kWrongVersion) {
    problem_ = WrongVersionText(decoded.have_version);
    return {ReceiveStatus::kWrongVersion, {}, {}};
  }
  problem_ = std::string("message refused: ") + Name(decoded.status);
  return {ReceiveStatus::kMalformed, {}, {}};
}

const std::string& ControlClient::HandshakeProblem() {
  while (impl_->monitor != nullptr) {
    const std::optional<Handshake> ended = impl_->monitor->Next();
    if (!ended.has_value()) break;
    handshake_problem_ = ClientProblem(*ended, config_.endpoint, config_.security);
  }
  return handshake_problem_;
}

bool ControlClient::Reopen() {
  return Reopen(config_.endpoint);
}

bool ControlClient::Reopen(const std::string& endpoint) {
  if (!backoff_.TryNow()) return false;
  config_.endpoint = endpoint;
  Open();
  ++stats_.reconnects;
  return true;
}

}  // namespace tetrion::wire
