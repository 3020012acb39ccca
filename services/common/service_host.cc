#include "services/common/service_host.h"

#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "lib/core/clock.h"
#include "lib/core/file_limit.h"
#include "lib/core/log.h"
#include "lib/metrics/shared_recorders.h"
#include "lib/run/program.h"

namespace tetrion {
namespace {

constexpr std::chrono::milliseconds kWait{10};
constexpr std::uint64_t kFewestFiles = 64;  // HTTP connections, regions, logs

std::string TextOf(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "unknown exception";
  }
}

}  // namespace

ServiceHost::ServiceHost(MetricsRegistry& metrics, const std::string& http_bind,
                         std::function<Readiness()> ready, std::function<void()> on_error)
    : metrics_(metrics),
      on_error_(std::move(on_error)),
      http_(http_bind, metrics, std::move(ready)) {
  RaiseFileLimit(kFewestFiles, "a service");
  metrics.Gauge("tetrion_build_info", {Revision(), Preset()}).Set(1);
  ServeLostLogLines(metrics);
}

void ServiceHost::Run(Agent& link, const Steps& steps) {
  link_.emplace(link, [this](std::exception_ptr error) { Fail(std::move(error)); });
  ShowCycles(metrics_, *link_);
  http_.Start();
  link_->Start();
  try {
    Wait(steps);
    link_->RequestStop();
    link_->Join();
    if (steps.stop_rest) steps.stop_rest();
  } catch (...) {
    Stop();
    throw;
  }
  Stop();
  MutexLock lock(mu_);
  if (error_) std::rethrow_exception(error_);
}

void ServiceHost::Wait(const Steps& steps) const {
  while (!steps.done() && link_->Running()) {
    if (steps.wait) {
      steps.wait();
    } else {
      std::this_thread::sleep_for(kWait);
    }
  }
}

void ServiceHost::Stop() {
  link_->RequestStop();
  link_->Join();
  http_.Stop();
}

void ServiceHost::Fail(std::exception_ptr error) {
  std::exception_ptr first;
  {
    MutexLock lock(mu_);
    first = error_;
    if (!error_) error_ = error;
  }
  if (!first) {
    on_error_();
  } else if (error != first) {  // not the same one on its way through another thread
    log::error("another failure: {}", TextOf(error));
  }
}

bool ServiceHost::failed() const {
  MutexLock lock(mu_);
  return error_ != nullptr;
}

Readiness MemberReadiness(const std::string& problem, std::int64_t cycle_age_ns) {
  if (cycle_age_ns <= kMaxLinkCycleNs) return {.ready = problem.empty(), .reason = problem};
  return {.ready = false,
          .reason = "the link's thread has been busy for " +
                    std::to_string(cycle_age_ns / kNanosPerSecond) + " s"};
}

void ShowCycles(MetricsRegistry& metrics, const AgentRunner& runner) {
  HotGauge& longest = metrics.Gauge("tetrion_agent_max_cycle_seconds", {runner.agent_name()});
  metrics.OnScrape([&longest, &runner] {
    longest.Set(static_cast<double>(runner.MaxCycleNs()) / kNanosPerSecond);
  });
}

LinkTotals TotalsOf(const wire::LinkStats& stats) {
  return {.messages_in = stats.messages_in,
          .messages_out = stats.messages_out,
          .bytes_in = stats.bytes_in,
          .bytes_out = stats.bytes_out,
          .malformed = stats.malformed,
          .reconnects = stats.reconnects};
}

}  // namespace tetrion
