#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <iceoryx_hoofs/log/logmanager.hpp>
#include <iceoryx_posh/popo/untyped_publisher.hpp>
#include <iceoryx_posh/popo/untyped_subscriber.hpp>
#include <iceoryx_posh/runtime/posh_runtime.hpp>
#include <optional>
#include <string>
#include <utility>

#include "bench/child.h"
#include "bench/shm/links.h"
#include "bench/shm/windows.h"

namespace tetrion::bench {

inline void Await(pid_t child) {
  int status = 0;
  TETRION_CHECK(waitpid(child, &status, 0) == child && status == 0, "a window's process failed");
}

// iceoryx's broker as a child, with memory pools for the benchmark's rows; ends with its owner.
class RouDi {
 public:
  // nullopt when it ends before it is ready.
  static std::optional<RouDi> Start() {
    const std::string config = ScratchFile("roudi-" + std::to_string(getpid()) + ".toml");
    std::FILE* file = std::fopen(config.c_str(), "w");
    if (file == nullptr) return std::nullopt;
    std::fputs(
        "[general]\nversion = 1\n[[segment]]\n[[segment.mempool]]\nsize = 64\ncount = 4096\n"
        "[[segment.mempool]]\nsize = 1472\ncount = 4096\n",
        file);
    std::fclose(file);
    int output[2];
    TETRION_CHECK(pipe(output) == 0, "no pipe for the broker");
    const pid_t pid = ForkChild(SIGTERM);
    if (pid == 0) {
      dup2(output[1], STDOUT_FILENO);
      dup2(output[1], STDERR_FILENO);
      close(output[0]);
      close(output[1]);
      execlp("iox-roudi", "iox-roudi", "-c", config.c_str(), static_cast<char*>(nullptr));
      _exit(127);
    }
    close(output[1]);
    const bool ready = AwaitReadyLine(output[0]);
    unlink(config.c_str());
    RouDi broker(pid, output[0]);
    if (!ready) return std::nullopt;
    return broker;
  }

  RouDi(RouDi&& other) noexcept
      : pid_(std::exchange(other.pid_, 0)), output_(std::exchange(other.output_, -1)) {}
  ~RouDi() {
    if (pid_ == 0) return;
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
    close(output_);
  }

 private:
  RouDi(pid_t pid, int output) : pid_(pid), output_(output) {}
  // Reads until "RouDi is ready for clients"; false at the end of the output.
  static bool AwaitReadyLine(int output) {
    std::string text;
    char part[256];
    while (text.find("ready for clients") == std::string::npos) {
      const ssize_t got = read(output, part, sizeof part);
      if (got <= 0) return false;
      text.append(part, static_cast<std::size_t>(got));
    }
    return true;
  }

  pid_t pid_;
  int output_;  // kept open: a broker that logs into a closed pipe would die
};

// A publisher and a subscriber that wait for each other when the queue of 256 is full: one chunk a
// record, written and read in place.
class IceoryxLink {
 public:
  static constexpr bool kPin = true;
  explicit IceoryxLink(std::size_t record_bytes) : record_bytes_(record_bytes) {
    static int serial = 0;
    name_ = std::to_string(getpid()) + "-" + std::to_string(serial++);
  }
  void OpenSender() {
    OpenRuntime();
    iox::popo::PublisherOptions options;
    options.subscriberTooSlowPolicy = iox::popo::ConsumerTooSlowPolicy::WAIT_FOR_CONSUMER;
    sender_.emplace(Service(), options);
    const std::int64_t until_ns = MonotonicClock::Get().NowNs() + 20 * kNanosPerSecond;
    while (!sender_->hasSubscribers()) {
      TETRION_CHECK(MonotonicClock::Get().NowNs() < until_ns, "no subscriber came");
      sched_yield();
    }
  }
  void OpenReceiver() {
    OpenRuntime();
    iox::popo::SubscriberOptions options;
    options.queueFullPolicy = iox::popo::QueueFullPolicy::BLOCK_PRODUCER;
    receiver_.emplace(Service(), options);
  }
  std::uint32_t Send() {
    auto loan = sender_->loan(static_cast<std::uint32_t>(record_bytes_));
    if (loan.has_error()) return 0;
    WriteRecord(static_cast<std::byte*>(loan.value()), record_bytes_, number_++);
    sender_->publish(loan.value());
    return 1;
  }
  std::uint32_t Receive() {
    auto taken = receiver_->take();
    if (taken.has_error()) return 0;
    ReadRecord(static_cast<const std::byte*>(taken.value()), record_bytes_, number_++);
    receiver_->release(taken.value());
    return 1;
  }

 private:
  // Once a process.
  static void OpenRuntime() {
    iox::log::LogManager::GetLogManager().SetDefaultLogLevel(
        iox::log::LogLevel::kOff, iox::log::LogLevelOutput::kHideLogLevel);
    const std::string name = "tetrion-bench-" + std::to_string(getpid());
    iox::runtime::PoshRuntime::initRuntime(
        iox::RuntimeName_t(iox::cxx::TruncateToCapacity, name.c_str()));
  }
  iox::capro::ServiceDescription Service() const {
    return {"TetrionBench", iox::capro::IdString_t(iox::cxx::TruncateToCapacity, name_.c_str()),
            "Row"};
  }

  std::size_t record_bytes_;
  std::string name_;
  std::optional<iox::popo::UntypedPublisher> sender_;
  std::optional<iox::popo::UntypedSubscriber> receiver_;
  std::uint64_t number_ = 0;
};

}  // namespace tetrion::bench
