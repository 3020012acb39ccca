#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/wire/remote_path.h"
#include "services/learner/remote_streams.h"
#include "tests/services/learner/ingest_fixture.h"

namespace tetrion::learner {

// Row `number` of a remote worker as TestWorker would write it.
inline std::vector<std::byte> RemoteRow(const RowLayout& layout, std::uint32_t worker,
                                        std::uint64_t number) {
  std::vector<std::byte> memory(layout.row_bytes);
  const RowView row(layout, memory.data());
  row.header->row = number;
  row.header->policy_version = static_cast<std::uint32_t>(number);
  for (std::size_t lane = 0; lane < layout.spec.lanes; ++lane) {
    std::memcpy(row.record + lane * layout.spec.record_bytes, &worker, sizeof worker);
    row.flags[lane] = number == 0 ? kIsFirst : 0;
    row.cont[lane] = 1.0F;
    row.episode_id[lane] = 1;
  }
  return memory;
}

// `count` rows from `first`, back to back: the payload of a batch.
inline std::vector<std::byte> RemoteRows(const RowLayout& layout, std::uint32_t worker,
                                         std::uint64_t first, std::uint64_t count) {
  std::vector<std::byte> rows;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::vector<std::byte> row = RemoteRow(layout, worker, first + i);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

// The streams between a hand-made actor and a real ingest agent; time is the test's, no socket is
// there.
class RemoteFixture : public IngestFixture, public RemoteStreams::RowsOut {
 protected:
  static constexpr std::uint64_t kProcess = 0x77;
  static constexpr std::uint64_t kCapacity = 16, kEnds = 3;

  RemoteFixture() { Restart(); }

  // A fresh learner: streams, replay and ingest; what the coordinator lists stays.
  void Restart() {
    streams_here_.reset();
    remote_ = std::make_unique<RemoteBoard>();
    remote_board_ = remote_.get();
    Build();
    streams_here_ =
        std::make_unique<RemoteStreams>(RemoteStreams::Config{.run_id = kRun,
                                                              .row_bytes = layout_.row_bytes,
                                                              .spec_hash = layout_.Hash(),
                                                              .ring_rows = kCapacity,
                                                              .first_stream = 1000 * ++starts_,
                                                              .max_ends = kEnds},
                                        *remote_, Bell(&bell_), *this, clock_);
  }
  void Send(const wire::PeerId& peer, const wire::RowsMessage& message) override {
    said_.emplace_back(peer, message);
  }

  void Say(const wire::RowsMessage& message, std::span<const std::byte> payload = {},
           std::uint64_t process = kProcess) {
    streams_here_->On("peer", {.run_id = kRun, .process = process}, message, payload);
  }
  wire::OpenRows OpenOf(std::uint64_t oldest, std::uint32_t worker = 1) const {
    return {wire::RemoteRingPath(kProcess, worker), layout_.row_bytes, layout_.Hash(), oldest};
  }
  // Lists the worker's ring, opens it and lets ingest take it. Returns the stream's number.
  std::uint64_t OpenListed(std::uint64_t oldest = 0) {
    ListRemote();
    return OpenAgain(oldest);
  }
  // The same for a ring that is listed.
  std::uint64_t OpenAgain(std::uint64_t oldest) {
    Cycle(2);
    Say(OpenOf(oldest));
    Cycle(2);
    return Last<wire::RowsOpened>().stream;
  }
  void ListRemote() { List({{wire::RemoteRingPath(kProcess, 1), 0}}); }
  void SayRows(std::uint64_t stream, std::uint64_t first, std::uint32_t count) {
    Say(wire::RowBatch{stream, first, count, wire::RowsPacking::kNone},
        RemoteRows(layout_, 1, first, count));
  }
  void Tick(std::uint32_t weights_version = 0) { streams_here_->Tick(weights_version); }
  // The newest message of the kind.
  template <typename T>
  T Last() const {
    for (auto said = said_.rbegin(); said != said_.rend(); ++said) {
      if (const T* found = std::get_if<T>(&said->second)) return *found;
    }
    ADD_FAILURE() << "nothing of the kind was said";
    return {};
  }
  // What the newest acknowledgement says of its only stream.
  wire::StreamAck Acked() const {
    const auto ack = Last<wire::RowsAck>();
    EXPECT_EQ(ack.streams.size(), 1U);
    return ack.streams.empty() ? wire::StreamAck{} : ack.streams[0];
  }
  const RemoteCounters& counters() const { return streams_here_->counters(); }
  EndedRing TheEnded() const {
    const std::vector<EndedRing> ended = board_.Ended();
    EXPECT_EQ(ended.size(), 1U);
    return ended.empty() ? EndedRing{} : ended[0];
  }

  std::vector<std::pair<wire::PeerId, wire::RowsMessage>> said_;
  std::unique_ptr<RemoteBoard> remote_;
  std::unique_ptr<RemoteStreams> streams_here_;
  std::uint64_t starts_ = 0;
};

}  // namespace tetrion::learner
