#pragma once

#include "services/learner/rows_agent.h"
#include "tests/services/learner/remote_fixture.h"

namespace tetrion::learner {

// The rows agent behind a real socket and the ingest agent behind it; the test calls both in turn.
class RowsAgentFixture : public RemoteFixture {
 protected:
  static constexpr std::uint64_t kBlobBytes = wire::kWeightsChunkBytes + 5;

  explicit RowsAgentFixture(const wire::ServerSecurity& security = {}) {
    auto socket = std::make_unique<wire::RowsServer>(wire::RowsServer::Config{
        .endpoint = "tcp://127.0.0.1:0", .run_id = kRun, .security = security});
    endpoint_ = socket->endpoint();
    rows_ = std::make_unique<RowsAgent>(
        RemoteStreams::Config{.run_id = kRun,
                              .row_bytes = layout_.row_bytes,
                              .spec_hash = layout_.Hash(),
                              .ring_rows = kCapacity},
        RowsAgent::Parts{.socket = std::move(socket),
                         .weights = WeightsSlotReader(slots_[0].bytes, kBlobBytes),
                         .ingest = Bell(&bell_)},
        *remote_);
  }
  wire::RowsClient Client(std::uint64_t process = kProcess,
                          const wire::ClientSecurity& security = {}) const {
    return wire::RowsClient({.endpoint = endpoint_,
                             .identity = {.run_id = kRun, .process = process},
                             .security = security});
  }
  // Both agents work until the client hears a message of the kind that `wanted` accepts.
  template <typename T>
  std::optional<wire::RowsReceived> Hear(
      wire::RowsClient& client,
      const std::function<bool(const T&)>& wanted = [](const T&) { return true; }) {
    const Deadline deadline = Deadline::AfterMs(10'000);
    while (!deadline.Passed()) {
      (void)rows_->DoWork();
      Cycle(1);
      wire::RowsReceived received = client.Receive(0);
      if (received.status != wire::ReceiveStatus::kMessage) continue;
      const T* message = std::get_if<T>(&received.message);
      if (message != nullptr && wanted(*message)) return received;
    }
    return std::nullopt;
  }

  struct alignas(128) Line {
    std::byte bytes[128];
  };
  std::vector<Line> slots_ = std::vector<Line>(WeightsSlotBytes(kBlobBytes) / sizeof(Line) + 1);
  WeightsSlotWriter publisher_{slots_[0].bytes, kBlobBytes};
  std::string endpoint_;
  std::unique_ptr<RowsAgent> rows_;
};

}  // namespace tetrion::learner
