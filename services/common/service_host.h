#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "lib/core/agent.h"
#include "lib/core/clock.h"
#include "lib/core/mutex.h"
#include "lib/http/http_endpoint.h"
#include "lib/metrics/registry.h"
#include "lib/metrics/shared_recorders.h"
#include "lib/wire/socket.h"

namespace tetrion {

// What every service does around its own parts: serves HTTP, runs the agent of its control link on
// a thread, keeps the first error of any thread, and ends in order.
//
// Thread roles: one thread, main's, owns the object and calls Run; the banners say what others may
// call.
class ServiceHost {
 public:
  // Binds `http_bind` at once: Error(kUsage) when it is in use. `ready` runs on threads of the
  // endpoint. `on_error` runs on the thread of the first error and must not throw. `metrics` must
  // outlive the host; lost log lines and the build are served there from now on.
  ServiceHost(MetricsRegistry& metrics, const std::string& http_bind,
              std::function<Readiness()> ready, std::function<void()> on_error);

  // A page of JSON. Before Run.
  void AddJson(const std::string& path, std::function<std::string()> body) {
    http_.AddJson(path, std::move(body));
  }
  const std::string& http_address() const { return http_.address(); }

  // What a service adds to Run. All on the calling thread.
  struct Steps {
    std::function<bool()> done;  // asked before every wait
    // Blocks for the time between two looks; empty: 10 ms.
    std::function<void()> wait = {};
    // Stops the service's other threads, once the link's thread has ended; pages are still served.
    std::function<void()> stop_rest = {};
  };
  // Once. Serves and runs `link` until `done` or until its thread has ended, by an error; then ends
  // that thread, the rest and HTTP. Throws what a step threw, else the first error of any thread;
  // the link's thread and HTTP have ended then, too.
  void Run(Agent& link, const Steps& steps) TETRION_EXCLUDES(mu_);

  // --- any thread ---
  // Keeps the error if it is the first, and logs a later one; the caller's thread ends. Fits
  // AgentRunner's on_error.
  void Fail(std::exception_ptr error) TETRION_EXCLUDES(mu_);
  bool failed() const TETRION_EXCLUDES(mu_);

  // --- endpoint threads, and the owner during Run ---
  // AgentRunner::CycleAgeNs of the link's thread.
  std::int64_t LinkCycleAgeNs() const { return link_ ? link_->CycleAgeNs() : 0; }

 private:
  void Wait(const Steps& steps) const;
  void Stop();

  MetricsRegistry& metrics_;
  const std::function<void()> on_error_;
  HttpEndpoint http_;
  std::optional<AgentRunner> link_;  // made by Run before HTTP starts

  mutable Mutex mu_;
  std::exception_ptr error_ TETRION_GUARDED_BY(mu_);
};

// Longest cycle of a healthy link's thread: readiness ends when a cycle is older.
inline constexpr std::int64_t kMaxLinkCycleNs = 5 * kNanosPerSecond;

// Of an actor or learner: ready while its link has no problem and its link's thread works.
Readiness MemberReadiness(const std::string& problem, std::int64_t cycle_age_ns);

// Shows the longest cycle of the runner's agent, the present one included. The runner outlives
// every scrape.
void ShowCycles(MetricsRegistry& metrics, const AgentRunner& runner);

// What a control socket has counted, as lib/metrics shows it.
LinkTotals TotalsOf(const wire::LinkStats& stats);

}  // namespace tetrion
