#include "lib/http/http_endpoint.h"

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "lib/core/address.h"
#include "lib/core/clock.h"
#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/core/json.h"
#include "lib/core/log.h"
#include "lib/core/mutex.h"
#include "lib/http/bounded_server.h"

namespace tetrion {
namespace {

constexpr std::size_t kMaxQueued = 16;  // connections waiting for a thread
// Connections that wait in the kernel. The library asks for 5: the sixth of a burst of scrapers
// then tries again a second later.
constexpr int kBacklog = 128;
constexpr std::int64_t kListenAgainMs = 200;
constexpr std::int64_t kStopAgainMs = 20;
constexpr std::size_t kMaxBodyBytes = 0;

std::string ReadinessJson(const Readiness& readiness) {
  return JsonObject().Add("ready", readiness.ready).Add("reason", readiness.reason).Text() + "\n";
}

constexpr const char* kJson = "application/json";

}  // namespace

struct HttpEndpoint::Impl {
  BoundedServer server;
  std::string host;
  std::uint16_t port = 0;
  std::thread thread;
  bool started = false;
  Mutex mu;
  CondVar changed;
  bool stopping TETRION_GUARDED_BY(mu) = false;
  bool ended TETRION_GUARDED_BY(mu) = false;  // `thread` serves no more

  void Configure();
  void Bind(const std::string& bind, const HostPort& wanted);
  void Serve() TETRION_EXCLUDES(mu);
  bool WaitToListenAgain() TETRION_EXCLUDES(mu);
};

void HttpEndpoint::Impl::Configure() {
  server.new_task_queue = [this] {
    return new BoundedPool(HttpEndpoint::kThreads, kMaxQueued, server.waiting());
  };
  // Not SO_REUSEPORT, the library's default: two services would share a port unawares.
  server.set_socket_options([](int fd) {
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  });
  server.set_payload_max_length(kMaxBodyBytes);
  server.set_pre_routing_handler([](const httplib::Request& request, httplib::Response& response) {
    // The library answers a part of a page, and a page as often as one header names its parts.
    if (!request.ranges.empty()) {
      response.status = 416;
    } else if (request.method != "GET") {
      response.status = 405;
      response.set_header("Allow", "GET");
    } else {
      return httplib::Server::HandlerResponse::Unhandled;
    }
    return httplib::Server::HandlerResponse::Handled;
  });
  server.set_exception_handler(
      [](const httplib::Request& request, httplib::Response& response, std::exception_ptr thrown) {
        response.status = 500;
        try {
          std::rethrow_exception(thrown);
        } catch (const std::exception& error) {
          log::warn("page {} failed: {}", request.path, error.what());
        } catch (...) {
          log::warn("page {} failed", request.path);
        }
      });
}

void HttpEndpoint::Impl::Bind(const std::string& bind, const HostPort& wanted) {
  errno = 0;
  const int bound = wanted.port == 0 ? server.bind_to_any_port(wanted.host)
                    : server.bind_to_port(wanted.host, wanted.port) ? wanted.port
                                                                    : -1;
  if (bound <= 0) {
    const int reason = errno;
    throw Error(IsWantOfResources(reason) ? ExitCode::kTryAgain : ExitCode::kUsage,
                "cannot serve HTTP on " + bind + ": " +
                    (reason != 0 ? std::strerror(reason) : "address not usable") +
                    "; choose another with --http-bind (port 0 takes a free one)");
  }
  host = wanted.host;
  port = static_cast<std::uint16_t>(bound);
  server.SetBacklog(kBacklog);
}

// Until Stop. The library closes its socket where a connection cannot be accepted, as when the
// system has no file or buffer left.
void HttpEndpoint::Impl::Serve() {
  server.listen_after_bind();
  bool told = false;  // why the port cannot be bound
  while (WaitToListenAgain()) {
    errno = 0;
    if (!server.bind_to_port(host, port)) {
      const int reason = errno;
      if (std::exchange(told, true)) continue;
      log::warn("HTTP on port {} is not served, since it cannot be bound again: {}; still trying",
                port, reason != 0 ? std::strerror(reason) : "address not usable");
      continue;
    }
    told = false;
    log::warn("HTTP on port {} could not accept a connection; listening again", port);
    server.SetBacklog(kBacklog);
    server.listen_after_bind();
  }
  MutexLock lock(mu);
  ended = true;
  changed.NotifyAll();
}

// False, at once, when the endpoint stops.
bool HttpEndpoint::Impl::WaitToListenAgain() {
  const Deadline pause = Deadline::AfterMs(kListenAgainMs);
  MutexLock lock(mu);
  while (!stopping && !pause.Passed()) changed.WaitFor(mu, kListenAgainMs * kNanosPerMilli);
  return !stopping;
}

HttpEndpoint::HttpEndpoint(const std::string& bind, const MetricsRegistry& registry,
                           std::function<Readiness()> readiness)
    : impl_(std::make_unique<Impl>()) {
  const HostPort wanted = ParseHostPort("HTTP", bind);
  impl_->Configure();
  impl_->Bind(bind, wanted);
  address_ = bind.substr(0, bind.rfind(':') + 1) + std::to_string(impl_->port);
  impl_->server.Get("/metrics", [&registry](const httplib::Request&, httplib::Response& response) {
    response.set_content(registry.SerializeText(), "text/plain; version=0.0.4; charset=utf-8");
  });
  impl_->server.Get("/livez", [](const httplib::Request&, httplib::Response& response) {
    response.set_content("{\"alive\":true}\n", kJson);
  });
  impl_->server.Get("/readyz", [readiness = std::move(readiness)](const httplib::Request&,
                                                                  httplib::Response& response) {
    const Readiness now = readiness();
    response.status = now.ready ? 200 : 503;
    response.set_content(ReadinessJson(now), kJson);
  });
}

HttpEndpoint::~HttpEndpoint() {
  if (!impl_->started) {  // only a serving server closes its socket
    // Nobody is answered: what the answers look at may not be there yet, or be gone.
    impl_->server.CutConnections();
    Start();
  }
  Stop();
}

void HttpEndpoint::AddJson(const std::string& path, std::function<std::string()> body) {
  impl_->server.Get(path,
                    [body = std::move(body)](const httplib::Request&, httplib::Response& response) {
                      response.set_content(body(), kJson);
                    });
}

void HttpEndpoint::Start() {
  impl_->started = true;
  impl_->server.FillTables("/livez");
  impl_->thread = std::thread([this] {
    pthread_setname_np(pthread_self(), "http");
    impl_->Serve();
  });
  // Stop has no effect on a server that does not run yet.
  const Deadline deadline = Deadline::AfterMs(5000);
  while (!impl_->server.is_running() && !deadline.Passed()) std::this_thread::yield();
}

void HttpEndpoint::Stop() {
  if (!impl_->thread.joinable()) return;
  impl_->server.CutConnections();
  {
    MutexLock lock(impl_->mu);
    impl_->stopping = true;
    impl_->changed.NotifyAll();
    // Again where it was just about to listen.
    while (!impl_->ended) {
      impl_->server.stop();
      impl_->changed.WaitFor(impl_->mu, kStopAgainMs * kNanosPerMilli);
    }
  }
  impl_->thread.join();
}

}  // namespace tetrion
