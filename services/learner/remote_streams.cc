#include "services/learner/remote_streams.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "lib/core/check.h"
#include "lib/core/counter.h"
#include "lib/core/error.h"
#include "lib/core/log.h"
#include "lib/wire/remote_path.h"

namespace tetrion::learner {
namespace {

// No worker has played as many rows: numbers up to here can be added to.
constexpr std::uint64_t kMaxRow = std::uint64_t{1} << 62;
constexpr std::int64_t kComplainEveryNs = 10 * kNanosPerSecond;

}  // namespace

RemoteStreams::RemoteStreams(const Config& config, RemoteBoard& board, Bell ingest, RowsOut& out,
                             const Clock& clock)
    : config_(config),
      board_(board),
      ingest_(ingest),
      out_(out),
      clock_(clock),
      next_stream_(config.first_stream),
      last_tick_ns_(clock.NowNs()) {
  const RingSpec spec = {.capacity = config.ring_rows, .record_bytes = config.row_bytes};
  TETRION_CHECK(RingStrideBytes(spec) == config.row_bytes, "rows lie back to back in a ring");
}

void RemoteStreams::On(const wire::PeerId& peer, const wire::Identity& sender,
                       const wire::RowsMessage& message, std::span<const std::byte> payload) {
  if (const auto* open = std::get_if<wire::OpenRows>(&message)) return OnOpen(peer, sender, *open);
  if (sender.run_id != config_.run_id) return;
  Hear(peer, sender.process);
  const auto with = [&](std::uint64_t number, const auto& then) {
    Stream* stream = Find(number, sender.process);
    if (stream == nullptr || stream->GivenUp()) {
      return out_.Send(peer, wire::StreamUnknown{number});
    }
    then(*stream);
  };
  if (const auto* batch = std::get_if<wire::RowBatch>(&message)) {
    AddRelaxed<std::uint64_t>(counters_.payload_bytes, payload.size());
    with(batch->stream, [&](Stream& s) { OnBatch(batch->stream, s, *batch, payload); });
  } else if (const auto* close = std::get_if<wire::CloseRows>(&message)) {
    with(close->stream, [&](Stream& s) { OnClose(close->stream, s, *close); });
  } else if (const auto* ping = std::get_if<wire::RowsPing>(&message)) {
    const auto known = peers_.find(sender.process);
    if (known == peers_.end()) return;
    known->second.next_ack_ns = 0;
    known->second.pinged = std::max(known->second.pinged, ping->number);
  }
}

// Remembers where the process is to be answered, once it has a stream.
void RemoteStreams::Hear(const wire::PeerId& peer, std::uint64_t process) {
  const auto known = peers_.find(process);
  if (known == peers_.end()) return;
  known->second.id = peer;
  known->second.heard_ns = clock_.NowNs();
}

RemoteStreams::Stream* RemoteStreams::Find(std::uint64_t number, std::uint64_t process) {
  const auto found = streams_.find(number);
  if (found == streams_.end() || found->second.process != process) return nullptr;
  return &found->second;
}

// 0: none.
std::uint64_t RemoteStreams::NumberOf(const std::string& path) const {
  const auto found = std::ranges::find_if(
      streams_, [&](const auto& numbered) { return numbered.second.path == path; });
  return found == streams_.end() ? 0 : found->first;
}

// Empty: the stream's rows are rows of this run.
std::string RemoteStreams::WhatIsWrong(const wire::Identity& sender,
                                       const wire::OpenRows& open) const {
  const auto differ = [](const char* what, std::uint64_t have, std::uint64_t needed) {
    return std::string("its ") + what + " is " + std::to_string(have) + ", the learner's " +
           std::to_string(needed) + ": use the same Tetrion release everywhere";
  };
  if (sender.run_id != config_.run_id) return differ("run", sender.run_id, config_.run_id);
  if (open.row_bytes != config_.row_bytes) {
    return differ("size of a row", open.row_bytes, config_.row_bytes);
  }
  if (open.spec_hash != config_.spec_hash) {
    return differ("row layout", open.spec_hash, config_.spec_hash);
  }
  if (open.oldest >= kMaxRow) return "row " + std::to_string(open.oldest) + " is impossible";
  if (open.row_bytes > wire::kMaxPayloadBytes) {
    return "a row has " + std::to_string(open.row_bytes) + " bytes, a message takes " +
           std::to_string(wire::kMaxPayloadBytes) + ": lower --lanes";
  }
  return "";
}

void RemoteStreams::OnOpen(const wire::PeerId& peer, const wire::Identity& sender,
                           const wire::OpenRows& open) {
  std::uint64_t process = 0;
  const auto refuse = [&](std::string text, bool final) {
    out_.Send(peer, wire::OpenRefused{open.path, std::move(text), final});
  };
  if (!wire::IsRemoteRingPath(open.path, &process) || process != sender.process) {
    return refuse("the ring is another process's", true);
  }
  if (const std::string wrong = WhatIsWrong(sender, open); !wrong.empty()) {
    if (sender.run_id == config_.run_id) board_.Refuse(open.path, wrong);
    return refuse(wrong, true);
  }
  std::uint64_t number = NumberOf(open.path);
  if (number != 0 && streams_.at(number).closed && board_.Expects(open.path)) {
    Look(streams_.at(number));
    Remember(streams_.at(number));  // the actor, which may not know, begins anew where it had ended
    streams_.erase(number);
    number = 0;
  }
  if (number == 0) {
    if (!board_.Expects(open.path)) {
      return refuse("the coordinator has not told the learner of this ring yet", false);
    }
    try {
      number = Begin(sender, open);
    } catch (const Error& error) {
      if (clock_.NowNs() >= next_complaint_ns_) {
        log::warn("no memory for the rows of {}: {}", open.path, error.what());
        next_complaint_ns_ = clock_.NowNs() + kComplainEveryNs;
      }
      return refuse(error.what(), false);
    }
    if (number == 0) return refuse("the ring was given up meanwhile", false);
  }
  Hear(peer, sender.process);
  Stream& stream = streams_.at(number);
  Look(stream);
  if (stream.GivenUp()) {
    streams_.erase(number);
    return refuse("the learner has given the ring up", false);
  }
  if (open.oldest > stream.next) {
    Break(number, stream,
          "its oldest row is " + std::to_string(open.oldest) + ", the learner has those below " +
              std::to_string(stream.next));
    return refuse("rows are missing that the learner never received", true);
  }
  out_.Send(peer,
            wire::RowsOpened{open.path, number, stream.next, stream.released, config_.ring_rows});
}

// Makes the stream and offers it to ingest. 0: ingest does not want it any more. Throws Error.
std::uint64_t RemoteStreams::Begin(const wire::Identity& sender, const wire::OpenRows& open) {
  const RingSpec spec = {.capacity = config_.ring_rows,
                         .record_bytes = config_.row_bytes,
                         .spec_hash = config_.spec_hash};
  const auto before = ends_.find(open.path);
  const std::uint64_t first =
      before == ends_.end() ? open.oldest : std::max(open.oldest, before->second.next);
  auto ring = std::make_shared<RemoteStream>(
      RingProducer::Create(Region::CreateAnonymous(RegionKind::kRing, RingRegionBytes(spec),
                                                   config_.run_id, config_.spec_hash, open.path),
                           spec, first));
  ring->producer.SetBell(ingest_);
  if (!board_.Offer(open.path, ring)) return 0;
  const std::int64_t now_ns = clock_.NowNs();
  const std::uint64_t number = ++next_stream_;
  streams_[number] = {.ring = std::move(ring),
                      .path = open.path,
                      .process = sender.process,
                      .next = first,
                      .released = first,
                      .told_next = first,
                      .told_released = first};
  peers_.try_emplace(sender.process, Peer{.heard_ns = now_ns,
                                          .streamed_ns = now_ns,
                                          .next_ack_ns = now_ns + config_.ack_every_ns});
  log::info("stream {} of {} begins at row {}", number, open.path, first);
  return number;
}

void RemoteStreams::OnBatch(std::uint64_t number, Stream& stream, const wire::RowBatch& batch,
                            std::span<const std::byte> payload) {
  stream.tell = true;
  const std::uint64_t bytes = batch.count * config_.row_bytes;
  if (bytes > wire::kMaxPayloadBytes) {
    return Break(number, stream, "a batch has " + std::to_string(bytes) + " bytes");
  }
  if (batch.first > stream.next) {
    return AddRelaxed<std::uint64_t>(counters_.gaps, batch.count);
  }
  const std::uint64_t end = batch.first + batch.count;
  const std::uint64_t known = std::min(end, stream.next) - batch.first;
  AddRelaxed<std::uint64_t>(counters_.duplicates, known);
  if (known == batch.count || stream.closed) return;
  std::span<const std::byte> rows = payload;
  if (batch.packing != wire::RowsPacking::kNone) {
    unpacked_.resize(bytes);
    const bool good = packer_.Unpack(batch.packing, payload, unpacked_);
    rows = good ? std::span<const std::byte>(unpacked_) : std::span<const std::byte>();
  }
  if (rows.size() != bytes) {
    return Break(number, stream,
                 "a batch of " + std::to_string(bytes) + " bytes has a payload that is no such");
  }
  Write(stream, rows.subspan(known * config_.row_bytes));
}

// As many rows as the ring has room for: an actor that keeps to its credit never sends more.
void RemoteStreams::Write(Stream& stream, std::span<const std::byte> rows) {
  RingProducer& producer = stream.ring->producer;
  std::uint64_t left = rows.size() / config_.row_bytes;
  while (left > 0) {
    RingProducer::Loan loan = producer.ClaimMany(static_cast<std::uint32_t>(left));
    if (!loan.ok()) break;
    const std::uint64_t bytes = loan.count() * config_.row_bytes;
    std::memcpy(loan.record(), rows.data(), bytes);
    rows = rows.subspan(bytes);
    left -= loan.count();
    loan.Complete();
  }
  AddRelaxed<std::uint64_t>(counters_.rows, producer.completed() - stream.next);
  AddRelaxed<std::uint64_t>(counters_.bytes,
                            (producer.completed() - stream.next) * config_.row_bytes);
  AddRelaxed<std::uint64_t>(counters_.beyond, left);
  producer.Publish();
  stream.next = producer.published();
}

void RemoteStreams::OnClose(std::uint64_t number, Stream& stream, const wire::CloseRows& close) {
  stream.tell = true;
  if (close.end > stream.next || stream.closed) return;  // answered with `next`
  if (close.end < stream.next) {
    return Break(number, stream,
                 "it ends at row " + std::to_string(close.end) + ", the learner has those below " +
                     std::to_string(stream.next));
  }
  stream.ring->producer.Close();
  stream.closed = true;
}

// Ends the stream as unusable; what its actor says of it from now on is answered as unknown.
void RemoteStreams::Break(std::uint64_t number, Stream& stream, const std::string& problem) {
  log::error("stream {} of {} is broken: {}", number, stream.path, problem);
  AddRelaxed<std::uint64_t>(counters_.broken, 1);
  if (stream.ring != nullptr) {
    stream.ring->problem = problem;
    stream.ring->broken.store(true, std::memory_order_release);  // pairs with RemoteRing::Peek
    if (ingest_.valid()) ingest_.Ring();
  }
  streams_.erase(number);
}

// Takes over how far ingest is.
void RemoteStreams::Look(Stream& stream) {
  if (stream.ring == nullptr) return;
  // Pairs with RemoteRing::End.
  const bool ended = stream.ring->ended.load(std::memory_order_acquire);
  RingProducer& producer = stream.ring->producer;
  const std::uint64_t released = stream.next - (config_.ring_rows - producer.FreeRecords());
  if (!producer.corrupt()) stream.released = released;
  if (ended) stream.ring.reset();
}

// Where the path's next stream begins at the earliest: behind all that ingest has taken, or, while
// it still has the ring, will take.
void RemoteStreams::Remember(const Stream& stream) {
  if (ends_.size() == config_.max_ends && !ends_.contains(stream.path)) {
    ends_.erase(
        std::ranges::min_element(ends_, {}, [](const auto& end) { return end.second.number; }));
  }
  const std::uint64_t next = stream.ring == nullptr ? stream.released : stream.next;
  ends_[stream.path] = {.next = next, .number = ++last_end_};
}

void RemoteStreams::Tick(std::uint32_t weights_version) {
  const std::int64_t now_ns = clock_.NowNs();
  const std::int64_t stall_ns = now_ns - std::exchange(last_tick_ns_, now_ns);
  if (stall_ns > kStallNs) {
    for (auto& [process, peer] : peers_) {
      peer.heard_ns = std::min(now_ns, peer.heard_ns + stall_ns);  // it may have been heard since
    }
  }
  for (auto& [number, stream] : streams_) Look(stream);
  std::erase_if(streams_, [](const auto& numbered) { return numbered.second.GivenUp(); });
  EndSilent(now_ns);
  ForgetStreamless(now_ns);
  awaits_release_ = std::ranges::any_of(
      streams_, [](const auto& s) { return s.second.released < s.second.next; });
  for (auto& [process, peer] : peers_) Acknowledge(process, peer, now_ns, weights_version);
  counters_.streams.store(static_cast<std::uint64_t>(std::ranges::count_if(
                              streams_, [](const auto& s) { return !s.second.closed; })),
                          std::memory_order_relaxed);
}

// After a Look at every stream: none is given up.
void RemoteStreams::EndSilent(std::int64_t now_ns) {
  std::erase_if(peers_, [&](const auto& known) {
    const std::int64_t silent_ns = now_ns - known.second.heard_ns;
    if (silent_ns < std::min(config_.silence_ns, config_.ownerless_silence_ns)) return false;
    const bool dead = silent_ns >= config_.silence_ns;
    std::erase_if(streams_, [&](const auto& numbered) {
      const auto& [number, stream] = numbered;
      if (stream.process != known.first || !(dead || board_.Ownerless(stream.path))) return false;
      Remember(stream);
      if (!stream.closed) EndBySilence(number, stream, silent_ns);
      return true;
    });
    return dead;
  });
}

// A process without a stream is no peer for long, however much it says.
void RemoteStreams::ForgetStreamless(std::int64_t now_ns) {
  for (const auto& [number, stream] : streams_) peers_.at(stream.process).streamed_ns = now_ns;
  std::erase_if(peers_, [&](const auto& known) {
    return now_ns - known.second.streamed_ns >= config_.silence_ns;
  });
}

void RemoteStreams::EndBySilence(std::uint64_t number, const Stream& stream,
                                 std::int64_t silent_ns) {
  log::warn("stream {} of {} ends at row {}: its actor was silent for {} s{}", number, stream.path,
            stream.next, silent_ns / kNanosPerSecond,
            board_.Ownerless(stream.path) ? ", and its session has ended" : "");
  AddRelaxed<std::uint64_t>(counters_.silent, 1);
  stream.ring->silent.store(true, std::memory_order_release);  // pairs with RemoteRing::Peek
  if (ingest_.valid()) ingest_.Ring();
}

void RemoteStreams::Acknowledge(std::uint64_t process, Peer& peer, std::int64_t now_ns,
                                std::uint32_t weights_version) {
  const bool all = now_ns >= peer.next_ack_ns;
  wire::RowsAck ack = {.streams = {}, .weights_version = weights_version, .answered = peer.pinged};
  for (auto& [number, stream] : streams_) {
    if (stream.process != process || ack.streams.size() == wire::kMaxStreams) continue;
    const bool moved = stream.next != stream.told_next || stream.released != stream.told_released;
    if (!all && !moved && !stream.tell) continue;
    ack.streams.push_back({number, stream.next, stream.released, stream.closed});
    stream.told_next = stream.next;
    stream.told_released = stream.released;
    stream.tell = false;
  }
  if (!all && ack.streams.empty()) return;
  peer.next_ack_ns = now_ns + config_.ack_every_ns;
  out_.Send(peer.id, ack);
}

}  // namespace tetrion::learner
