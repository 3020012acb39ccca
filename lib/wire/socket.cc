#include "lib/wire/socket.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/wire/channel_ends.h"
#include "lib/wire/zmq_socket.h"

namespace tetrion::wire {
namespace {

constexpr ChannelPolicy kControlChannel = {
    .most_frame_bytes = kMaxMessageBytes,
    .reconnect_most_ms = 800,
    // Not ZeroMQ's own heartbeats: each of them cancels timers, and ZeroMQ 4.3 looks for a timer
    // along the list of all connections' timers.
    .heartbeat_every_ms = 0,
};
constexpr int kServerSendHighWaterMark = 128;
constexpr int kServerBacklog = 4096;
constexpr int kClientSendHighWaterMark = 1024;
constexpr std::string_view kIpcScheme = "ipc://";

}  // namespace

// Holds "<socket path>.lock" for as long as the server listens.
class ControlServer::PathLock {
 public:
  // Throws Error(kUsage) when another process holds it or it cannot be made, kTryAgain where that
  // may pass.
  explicit PathLock(const std::string& socket_path)
      : socket_path_(socket_path), path_(socket_path + ".lock") {
    RefuseOtherFile();
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
    throw Error(CodeOfFault(errno, ExitCode::kUsage),
                "cannot lock " + path_ + ": " + std::strerror(errno) +
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
  // ZeroMQ would remove it.
  void RefuseOtherFile() const {
    struct stat named = {};
    if (lstat(socket_path_.c_str(), &named) != 0 || S_ISSOCK(named.st_mode)) return;
    throw Error(ExitCode::kUsage, "cannot listen at " + socket_path_ +
                                      ": it is there and is no socket; choose another --bind");
  }

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
  router_ =
      std::make_unique<Router>(endpoint, security_, kControlChannel,
                               Router::Config{.what = "the control socket",
                                              .bind_like = "--bind tcp://127.0.0.1:0",
                                              .send_high_water_mark = kServerSendHighWaterMark,
                                              .backlog = kServerBacklog});
  endpoint_ = router_->Endpoint();
  if (path_lock_ != nullptr) path_lock_->KeepOthersOut();
}

void ControlServer::Rebind() {
  const std::string endpoint = endpoint_;
  router_.reset();
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
  return PollSocket(router_->socket(), timeout_ms, extra_fd);
}

std::optional<ControlServer::Received> ControlServer::Receive() {
  Frame id, body;
  if (!id.Receive(router_->socket())) return std::nullopt;
  Received received;
  received.peer.assign(reinterpret_cast<const char*>(id.data()), id.size());
  if (id.More() && body.Receive(router_->socket())) {
    received.bytes.assign(body.data(), body.data() + body.size());
    if (body.More()) {
      SkipRest(body, router_->socket());
      received.bytes.clear();  // not a message of ours: Decode will say too short
    }
  }
  ++stats_.messages_in;
  stats_.bytes_in += received.bytes.size();
  return received;
}

SendStatus ControlServer::Send(const PeerId& peer, const Message& message) {
  return router_->Send(peer, {Encode(message, {.run_id = run_id_}), {}}, stats_);
}

ControlClient::ControlClient(const Config& config, const Clock& clock)
    : identity_(config.identity),
      dealer_(std::make_unique<Dealer>(
          kControlChannel,
          Dealer::Config{
              .endpoint = config.endpoint,
              .whom = "the coordinator",
              .looks_like = "the address looks like tcp://127.0.0.1:41234 or ipc:///path",
              .backoff = config.backoff,
              .context = config.context,
              .security = config.security,
              .send_high_water_mark = kClientSendHighWaterMark},
          clock)) {}

ControlClient::~ControlClient() = default;

SendStatus ControlClient::Send(const Message& message) {
  return dealer_->Send({Encode(message, identity_), {}}, stats_);
}

Readiness ControlClient::Poll(int timeout_ms, int extra_fd) {
  return PollSocket(dealer_->socket(), timeout_ms, extra_fd);
}

ReceiveResult ControlClient::Receive(int timeout_ms) {
  Frame frame;
  if (!dealer_->Receive(frame, timeout_ms)) return {};
  ++stats_.messages_in;
  stats_.bytes_in += frame.size();
  DecodeResult decoded;
  decoded.status = DecodeStatus::kBadIdentifier;
  if (frame.More()) {
    SkipRest(frame, dealer_->socket());
  } else {
    decoded = Decode({frame.data(), frame.size()});
  }
  if (decoded.status == DecodeStatus::kOk) {
    dealer_->Heard();
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

const std::string& ControlClient::endpoint() const {
  return dealer_->endpoint();
}

const std::string& ControlClient::HandshakeProblem() {
  return dealer_->HandshakeProblem();
}

bool ControlClient::Reopen() {
  return Reopen(endpoint());
}

bool ControlClient::Reopen(const std::string& endpoint) {
  return dealer_->Reopen(endpoint, dealer_->server_key(), stats_);
}

}  // namespace tetrion::wire
