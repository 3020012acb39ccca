#pragma once

#include <sys/mman.h>
#include <unistd.h>
#include <zmq.h>

#include <boost/lockfree/spsc_queue.hpp>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "lib/core/check.h"
#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"

namespace tetrion::bench {

// The contestants: one-way links between a sender and a receiver, each used by one thread or
// process. Send hands over up to a batch and returns how many records went; Receive takes what is
// there and returns how many. Every record's first word is its number, checked by the receiver; all
// of its words are written and read. OpenSender and OpenReceiver run in the thread or process that
// will use the end.

inline constexpr std::uint64_t kCapacity = 1024;
inline constexpr std::uint32_t kMaxBatch = 32;

// A path in the folder of temporary files.
inline std::string ScratchFile(const std::string& name) {
  return std::filesystem::temp_directory_path() / ("tetrion-bench-" + name);
}

// Zeroed memory that forked processes share.
template <typename T>
T* MapShared(std::size_t bytes = sizeof(T)) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  TETRION_CHECK(memory != MAP_FAILED, "no memory for the benchmark");
  return static_cast<T*>(memory);
}

inline void WriteRecord(std::byte* record, std::size_t bytes, std::uint64_t number) {
  auto* words = reinterpret_cast<std::uint64_t*>(record);
  for (std::size_t w = 0; w < bytes / 8; ++w) words[w] = number + w;
}

// Reads every word; CHECKs the number and the sum.
inline void ReadRecord(const std::byte* record, std::size_t bytes, std::uint64_t number) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(record);
  const std::uint64_t n = bytes / 8;
  std::uint64_t sum = 0;
  for (std::size_t w = 0; w < n; ++w) sum += words[w];
  TETRION_CHECK(sum == n * number + n * (n - 1) / 2, "a record arrived torn or out of order");
}

template <std::size_t kBytes>
class OurLink {
 public:
  static constexpr bool kPin = true;
  static constexpr std::size_t kStride = AlignUp(kBytes, 64);
  explicit OurLink(std::uint32_t batch, std::uint64_t capacity = kCapacity)
      : batch_(batch),
        spec_{.capacity = capacity, .record_bytes = kBytes, .spec_hash = 1},
        memory_(MapShared<std::byte>(RingMemoryBytes(spec_))),
        producer_(RingProducer::Over(memory_, spec_)),
        consumer_(RingConsumer::Over(memory_, spec_)) {}
  ~OurLink() { munmap(memory_, RingMemoryBytes(spec_)); }
  void OpenSender() {}
  void OpenReceiver() {}
  std::uint32_t Send() {
    auto loan = producer_.ClaimMany(batch_);
    if (!loan.ok()) return 0;
    const std::uint32_t sent = loan.count();
    const std::uint64_t first = producer_.completed();
    for (std::uint32_t i = 0; i < sent; ++i) {
      WriteRecord(loan.record() + i * kStride, kBytes, first + i);
    }
    loan.Complete();
    producer_.Publish();
    return sent;
  }
  std::uint32_t Receive() {
    const RingPeek peek = consumer_.Peek();
    const std::uint32_t count = batch_ == 1 && peek.count > 1 ? 1 : peek.count;
    for (std::uint32_t i = 0; i < count; ++i) {
      ReadRecord(peek.records + i * kStride, kBytes, peek.first + i);
    }
    if (count > 0) consumer_.Release(count);
    return count;
  }

 private:
  std::uint32_t batch_;
  RingSpec spec_;
  std::byte* memory_;
  // Two processes would not share these lines.
  alignas(128) RingProducer producer_;
  alignas(128) RingConsumer consumer_;
};

// boost::lockfree::spsc_queue of 64-byte records, with its array push and pop for batches.
class BoostLink {
 public:
  static constexpr bool kPin = true;
  explicit BoostLink(std::uint32_t batch) : batch_(batch), queue_(std::make_unique<Queue>()) {}
  void OpenSender() {}
  void OpenReceiver() {}
  std::uint32_t Send() {
    if (pending_ == 0) {
      for (; pending_ < batch_; ++pending_) {
        WriteRecord(out_[pending_].bytes, sizeof(Record), written_++);
      }
    }
    const auto first = batch_ - pending_;
    const auto sent = batch_ == 1
                          ? static_cast<std::uint32_t>(queue_->push(out_[0]))
                          : static_cast<std::uint32_t>(queue_->push(out_ + first, pending_));
    pending_ -= sent;
    return sent;
  }
  std::uint32_t Receive() {
    const auto count = batch_ == 1 ? static_cast<std::uint32_t>(queue_->pop(in_[0]))
                                   : static_cast<std::uint32_t>(queue_->pop(in_, batch_));
    for (std::uint32_t i = 0; i < count; ++i) ReadRecord(in_[i].bytes, sizeof(Record), read_++);
    return count;
  }

 private:
  struct alignas(64) Record {
    std::byte bytes[64];
  };
  using Queue = boost::lockfree::spsc_queue<Record, boost::lockfree::capacity<kCapacity>>;
  std::uint32_t batch_;
  std::unique_ptr<Queue> queue_;
  // Sender, receiver.
  alignas(128) Record out_[kMaxBatch];
  std::uint32_t pending_ = 0;
  std::uint64_t written_ = 0;
  alignas(128) Record in_[kMaxBatch];
  std::uint64_t read_ = 0;
};

// The limit: one word on a line of its own, no queue at all. For round trips only.
class RawLink {
 public:
  static constexpr bool kPin = true;
  RawLink() : line_(new (MapShared<Line>()) Line) {}
  ~RawLink() { munmap(line_, sizeof(Line)); }
  void OpenSender() {}
  void OpenReceiver() {}
  std::uint32_t Send() {
    line_->word.store(++sent_, std::memory_order_release);
    return 1;
  }
  std::uint32_t Receive() {
    if (line_->word.load(std::memory_order_acquire) == received_) return 0;
    ++received_;
    return 1;
  }

 private:
  struct alignas(128) Line {
    std::atomic<std::uint64_t> word;
  };
  Line* line_;
  alignas(128) std::uint64_t sent_ = 0;
  alignas(128) std::uint64_t received_ = 0;
};

// libzmq PUSH/PULL over ipc, one message a record. Blocks (up to 10 ms) instead of spinning: its
// I/O threads need the cores.
class ZmqLink {
 public:
  static constexpr bool kPin = false;
  explicit ZmqLink(std::size_t record_bytes) : buffer_(record_bytes) {
    static int serial = 0;
    path_ = ScratchFile(std::to_string(getpid()) + "-" + std::to_string(serial++));
  }
  ~ZmqLink() {
    if (socket_ != nullptr) zmq_close(socket_);
    if (context_ != nullptr) zmq_ctx_term(context_);
    unlink(path_.c_str());
  }
  void OpenSender() { Open(ZMQ_PUSH, zmq_connect); }
  void OpenReceiver() { Open(ZMQ_PULL, zmq_bind); }
  std::uint32_t Send() {
    WriteRecord(buffer_.data(), buffer_.size(), number_);
    if (zmq_send(socket_, buffer_.data(), buffer_.size(), 0) < 0) return 0;
    ++number_;
    return 1;
  }
  std::uint32_t Receive() {
    const int got = zmq_recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (got < 0) return 0;
    ReadRecord(buffer_.data(), buffer_.size(), number_++);
    return 1;
  }

 private:
  void Open(int type, int (*attach)(void*, const char*)) {
    context_ = zmq_ctx_new();
    socket_ = zmq_socket(context_, type);
    const int linger = 0;
    const int timeout_ms = 10;
    zmq_setsockopt(socket_, ZMQ_SNDTIMEO, &timeout_ms, sizeof timeout_ms);
    zmq_setsockopt(socket_, ZMQ_RCVTIMEO, &timeout_ms, sizeof timeout_ms);
    zmq_setsockopt(socket_, ZMQ_LINGER, &linger, sizeof linger);
    TETRION_CHECK(attach(socket_, ("ipc://" + path_).c_str()) == 0, "cannot open the ipc socket");
  }
  std::vector<std::byte> buffer_;
  std::string path_;
  void* context_ = nullptr;
  void* socket_ = nullptr;
  std::uint64_t number_ = 0;
};

}  // namespace tetrion::bench
