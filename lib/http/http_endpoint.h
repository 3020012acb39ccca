#pragma once

#include <functional>
#include <memory>
#include <string>

#include "lib/metrics/registry.h"

namespace tetrion {

struct Readiness {
  bool ready = false;
  std::string reason;  // why not; may be empty when ready
};

// The HTTP port of a service: /metrics (Prometheus text), /livez (200 while the process serves),
// /readyz (200 or 503, JSON {"ready":…,"reason":…}) and the service's own JSON pages. GET only, no
// request bodies, no parts of pages, at most kThreads requests at once, a bounded queue behind
// them. A connection has 5 s and 64 KiB of request; while others wait, 250 ms for its request.
//
// Thread roles: one thread owns the object; handlers run on the endpoint's threads, so the
// functions given to it must be thread-safe and quick, and outlive Stop.
class HttpEndpoint {
 public:
  static constexpr int kThreads = 4;

  // Binds `bind`, "host:port"; port 0 takes a free one. `registry` must outlive the endpoint.
  // Throws Error(kUsage) with address and hint when the port is in use or the address unusable.
  HttpEndpoint(const std::string& bind, const MetricsRegistry& registry,
               std::function<Readiness()> readiness);
  // Stops.
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  // A page of JSON, e.g. "/status". Before Start.
  void AddJson(const std::string& path, std::function<std::string()> body);
  // Serves on threads of its own; returns at once. Where the system cannot accept a connection, for
  // want of files or buffers, the port is closed for a moment and served again.
  void Start();
  // Ends serving; returns after the requests under way (their time-out is 1 s). May be called
  // twice.
  void Stop();
  // "127.0.0.1:41234", valid from construction on.
  const std::string& address() const { return address_; }

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::string address_;
};

}  // namespace tetrion
