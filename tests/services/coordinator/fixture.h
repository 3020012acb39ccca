#pragma once

#include <gtest/gtest.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "lib/core/clock.h"
#include "lib/metrics/registry.h"
#include "lib/setup/run_setup.h"
#include "lib/wire/socket.h"
#include "services/coordinator/control_agent.h"
#include "services/coordinator/sqlite.h"
#include "services/coordinator/store.h"
#include "services/coordinator/store_agent.h"
#include "tests/support/source_file.h"

namespace tetrion::coordinator {

// A folder of the test's own, removed with it.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tetrion-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The real agents over a real store and real sockets, stepped by the test on one thread under a
// clock that the test moves: the order of events is the test's.
class CoordinatorFixture : public ::testing::Test {
 protected:
  static constexpr int kTries = 100;  // about 10 s of waiting for a message

  void SetUp() override {
    config_.session_lease_ms = lease_ms_;
    Start();
  }

  void Start() {
    config_.run = "test";
    config_.session_lines = 100;
    config_.run_folder = folder_.path();
    config_.bind = "ipc://" + folder_.path() + "/c.sock";
    config_.shm_dir = "/dev/shm/tetrion-test";
    Resolve(config_.run_config);
    store_ = std::make_unique<Store>(folder_ / db_name_);
    stored_ = store_->Load(12345);
    store_agent_ = std::make_unique<StoreAgent>(*store_, clock_);
    registry_ = std::make_unique<MetricsRegistry>();
    metrics_ = std::make_unique<ControlMetrics>(*registry_, "test");
    control_ = std::make_unique<ControlAgent>(config_, stored_, *store_agent_, *metrics_, clock_);
  }

  // The process dies here: what is on disk now is all that its successor sees. Files are copied
  // while the old process still has them open, since closing would tidy them.
  void Crash() {
    const std::string next = "crash" + std::to_string(++crashes_) + ".db";
    for (const char* suffix : {"", "-wal"}) {
      const std::string from = folder_ / (db_name_ + suffix);
      if (std::filesystem::exists(from)) std::filesystem::copy(from, folder_ / (next + suffix));
    }
    control_.reset();
    store_agent_.reset();
    store_.reset();
    db_name_ = next;
    Start();
  }

  // A member process: its own number, or that of one that reconnects. It belongs to the run.
  std::unique_ptr<wire::ControlClient> Connect(std::uint64_t process = 0) {
    if (process == 0) process = ++last_process_;
    return ConnectAs({.run_id = stored_.run_id, .process = process});
  }
  std::unique_ptr<wire::ControlClient> ConnectAs(const wire::Identity& identity) {
    return std::make_unique<wire::ControlClient>(
        wire::ControlClient::Config{.endpoint = control_->endpoint(), .identity = identity});
  }
  static std::uint64_t SequenceOf(std::uint64_t session) {
    return SessionTable::SequenceOf(session);
  }

  // One cycle of both agents; reports alone need the clock to move past the group's wait.
  void Cycle() {
    control_->DoWork();
    clock_.AdvanceMs(60);
    RunStore();
    control_->DoWork();
  }
  // Without work the store agent would wait, in real time.
  void RunStore() {
    if (store_agent_->Queued() > 0) store_agent_->DoWork();
  }
  // The control agent alone: nothing is committed.
  void CycleWithoutStore() { control_->DoWork(); }
  // Moves time in steps small enough to be no stall.
  void Pass(std::int64_t ms) {
    for (; ms > 0; ms -= 500) {
      clock_.AdvanceMs(std::min<std::int64_t>(ms, 500));
      control_->DoWork();
      RunStore();
    }
  }

  // The next answer of the kind `Answer`, cycling the agents meanwhile; others are skipped.
  template <typename Answer>
  std::optional<Answer> Await(wire::ControlClient& client) {
    for (int i = 0; i < kTries; ++i) {
      wire::ReceiveResult result = client.Receive(0);
      if (result.status == wire::ReceiveStatus::kMessage) {
        if (auto* answer = std::get_if<Answer>(&result.message)) return std::move(*answer);
        continue;
      }
      Cycle();
    }
    return std::nullopt;
  }
  // The same for an answer that need not come.
  template <typename Answer>
  std::optional<Answer> AwaitBriefly(wire::ControlClient& client) {
    for (int i = 0; i < 12; ++i) {
      wire::ReceiveResult result = client.Receive(2);
      if (auto* answer = std::get_if<Answer>(&result.message)) return std::move(*answer);
      Cycle();
    }
    return std::nullopt;
  }
  template <typename Answer>
  std::optional<Answer> Ask(wire::ControlClient& client, const wire::Message& message) {
    EXPECT_EQ(client.Send(message), wire::SendStatus::kOk);
    return Await<Answer>(client);
  }

  wire::Registered Join(wire::ControlClient& client, const wire::Register& message) {
    const auto registered = Ask<wire::Registered>(client, message);
    EXPECT_TRUE(registered.has_value());
    return registered.value_or(wire::Registered{});
  }
  wire::Registered JoinActor(wire::ControlClient& client, std::uint32_t workers = 1) {
    return Join(client, {.name = "actor-0", .workers = workers});
  }
  wire::Registered JoinLearner(wire::ControlClient& client) {
    return Join(client, {.role = wire::Role::kLearner, .name = "learner"});
  }
  wire::Grant GetGrant(wire::ControlClient& client, std::uint64_t session, std::uint64_t request,
                       std::uint32_t ranges = 1) {
    const auto grant = Ask<wire::Grant>(client, wire::GrantRequest{session, request, ranges});
    EXPECT_TRUE(grant.has_value());
    return grant.value_or(wire::Grant{});
  }
  static wire::ReportBatch Batch(std::uint64_t session, std::uint64_t batch, std::uint64_t first,
                                 std::uint64_t count, std::uint32_t attempt = 1) {
    wire::ReportBatch message{session, batch, {}, 0};
    for (std::uint64_t i = 0; i < count; ++i) {
      message.episodes.push_back({.token_id = first + i,
                                  .attempt = attempt,
                                  .length_steps = 10,
                                  .lines = 2,
                                  .episode_return = static_cast<float>(i)});
    }
    return message;
  }
  // What tests/support/check_account.py says of the store: its exit status.
  int CheckAccount() const {
    std::string python = "python3", db = folder_ / db_name_;
    std::string script = testing::SourceFile("tests/support/check_account.py");
    char* argv[] = {python.data(), script.data(), db.data(), nullptr};
    pid_t pid = 0;
    int status = -1;
    if (posix_spawnp(&pid, "python3", nullptr, nullptr, argv, environ) != 0) return -1;
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::uint32_t lease_ms_ = 3000;
  TestFolder folder_;
  FakeClock clock_;
  ControlConfig config_;
  std::string db_name_ = "tetrion.db";
  int crashes_ = 0;
  std::uint64_t last_process_ = 0;
  StoredRun stored_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<StoreAgent> store_agent_;
  std::unique_ptr<MetricsRegistry> registry_;
  std::unique_ptr<ControlMetrics> metrics_;
  std::unique_ptr<ControlAgent> control_;
};

}  // namespace tetrion::coordinator
