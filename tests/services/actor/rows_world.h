#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lib/core/clock.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
#include "lib/wire/rows_messages.h"
#include "lib/wire/rows_packing.h"
#include "services/actor/row_stream.h"

// A worker, a network and a learner for tests of what lies between them.
namespace tetrion::actor::testing {

inline constexpr std::uint64_t kRowBytes = 64;
inline constexpr std::uint64_t kSpecHash = 0x5EC;

struct Sent {
  wire::RowsMessage message;
  std::vector<std::byte> payload;
};

// Keeps what is sent, up to `room` messages.
class RecordingPort final : public RowsPort {
 public:
  bool Send(const wire::RowsMessage& message, std::span<const std::byte> payload) override {
    if (sent.size() >= room) return false;
    sent.push_back({message, {payload.begin(), payload.end()}});
    return true;
  }
  template <typename M>
  std::vector<M> All() const {
    std::vector<M> all;
    for (const Sent& one : sent) {
      if (const auto* message = std::get_if<M>(&one.message)) all.push_back(*message);
    }
    return all;
  }

  std::vector<Sent> sent;
  std::size_t room = ~std::size_t{0};
};

// A worker's ring, whose row i holds the number i.
class CountingRing {
 public:
  explicit CountingRing(std::uint64_t capacity)
      : spec_{.capacity = capacity, .record_bytes = kRowBytes, .spec_hash = kSpecHash},
        producer_(
            RingProducer::Create(Region::CreateAnonymous(RegionKind::kRing, RingRegionBytes(spec_),
                                                         1, kSpecHash, "test"),
                                 spec_)) {}
  // Writes up to `rows` rows; returns how many had room.
  std::uint64_t Write(std::uint64_t rows) {
    std::uint64_t written = 0;
    for (; written < rows; ++written) {
      auto loan = producer_.Claim();
      if (!loan.ok()) break;
      const std::uint64_t number = producer_.completed();
      std::memcpy(loan.record(), &number, sizeof number);
      loan.Complete();
    }
    producer_.Publish();
    return written;
  }
  void Close() { producer_.Close(); }
  std::uint64_t published() const { return producer_.published(); }
  std::uint64_t released() const { return producer_.Released(); }
  RingConsumer Consumer() { return RingConsumer::Beside(producer_); }

 private:
  const RingSpec spec_;
  RingProducer producer_;
};

inline std::uint64_t NumberAt(std::span<const std::byte> rows, std::uint64_t i) {
  std::uint64_t number = 0;
  std::memcpy(&number, rows.data() + i * kRowBytes, sizeof number);
  return number;
}

// The learner's half of the protocol, in the plainest way: checks that every row is the one that
// its number says, that none has a gap before it, and that its memory is enough.
class PlainLearner {
 public:
  struct Stream {
    std::string path;
    std::uint64_t first = 0, next = 0, released = 0;
    bool closed = false;
  };
  PlainLearner(std::uint64_t incarnation, std::uint64_t capacity)
      : next_stream_(incarnation * 1000 + 1), capacity_(capacity) {}

  std::vector<wire::RowsMessage> On(const Sent& sent) {
    if (const auto* open = std::get_if<wire::OpenRows>(&sent.message)) return {Open(*open)};
    if (const auto* batch = std::get_if<wire::RowBatch>(&sent.message)) {
      return {Take(*batch, sent.payload)};
    }
    if (const auto* close = std::get_if<wire::CloseRows>(&sent.message)) return {Close(*close)};
    if (const auto* ping = std::get_if<wire::RowsPing>(&sent.message)) {
      pinged_ = std::max(pinged_, ping->number);
      return {Acks()};
    }
    return {};
  }
  wire::RowsAck Acks() const {
    wire::RowsAck ack = {.streams = {}, .answered = pinged_};
    for (const auto& [number, s] : streams) {
      ack.streams.push_back({number, s.next, s.released, s.closed});
    }
    return ack;
  }

  std::map<std::uint64_t, Stream> streams;  // by number
  std::uint64_t duplicates = 0;

 private:
  wire::RowsMessage Open(const wire::OpenRows& open) {
    EXPECT_EQ(open.row_bytes, kRowBytes);
    EXPECT_EQ(open.spec_hash, kSpecHash);
    for (const auto& [number, s] : streams) {
      if (s.path != open.path) continue;
      EXPECT_LE(open.oldest, s.next) << "rows were given up that the learner never received";
      return wire::RowsOpened{s.path, number, s.next, s.released, capacity_};
    }
    streams[next_stream_] = {open.path, open.oldest, open.oldest, open.oldest, false};
    return wire::RowsOpened{open.path, next_stream_++, open.oldest, open.oldest, capacity_};
  }
  wire::RowsMessage Take(const wire::RowBatch& batch, std::span<const std::byte> payload) {
    const auto found = streams.find(batch.stream);
    if (found == streams.end()) return wire::StreamUnknown{batch.stream};
    Stream& s = found->second;
    std::vector<std::byte> rows(batch.count * kRowBytes);
    EXPECT_TRUE(packer_.Unpack(batch.packing, payload, rows));
    for (std::uint64_t i = 0; i < batch.count; ++i) {
      if (batch.first + i < s.next) ++duplicates;
      if (batch.first + i != s.next) continue;
      EXPECT_EQ(NumberAt(rows, i), s.next);
      ++s.next;
      EXPECT_LE(s.next - s.released, capacity_) << "more was sent than there was credit for";
    }
    return AckOf(*found);
  }
  wire::RowsMessage Close(const wire::CloseRows& close) {
    const auto found = streams.find(close.stream);
    if (found == streams.end()) return wire::StreamUnknown{close.stream};
    Stream& s = found->second;
    s.closed = s.next == close.end;
    return AckOf(*found);
  }
  wire::RowsAck AckOf(const std::pair<const std::uint64_t, Stream>& numbered) const {
    const auto& [number, s] = numbered;
    return {{{number, s.next, s.released, s.closed}}, 0, pinged_};
  }

  std::uint64_t next_stream_;
  const std::uint64_t capacity_;
  std::uint64_t pinged_ = 0;
  wire::RowsPacker packer_;
};

}  // namespace tetrion::actor::testing
