#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tetrion::learner {

// Whose rows a source has, and which shard of the replay they go to. Its finder tells sources apart
// in its own way: rings by their path, which stays when their actor registers anew.
struct SourceId {
  std::uint64_t session = 0;  // of the worker's actor when the source was found
  std::uint32_t worker = 0;
  int shard = 0;
  std::string address;  // where the rows come from: a ring's path
};

enum class [[nodiscard]] SourceState {
  kRows,
  kNone,  // for now
  // Final. Every row before the end was taken, unless the source is unusable.
  kClosed,     // by the producer
  kOwnerDead,  // the producer's process died
  kUnusable,   // see RowSource::problem
};

// What Peek finds: rows that lie back to back, oldest first.
struct SourceRows {
  SourceState state = SourceState::kNone;
  const std::byte* rows = nullptr;  // [count, row_bytes] u8; valid until released
  std::uint64_t first = 0;          // number of the first row
  std::uint32_t count = 0;          // 0 unless kRows
  std::uint64_t void_rows = 0;      // published rows that were passed over: none will ever come
};

// Complete rows of one worker, in order. Another process may be able to write into rows that are
// peeked: the caller copies them once, checks the copy, and only then uses it.
//
// Thread role: the ingest thread. Nothing blocks but Remove.
class RowSource {
 public:
  explicit RowSource(SourceId id) : id_(std::move(id)) {}
  virtual ~RowSource() = default;
  RowSource(const RowSource&) = delete;
  RowSource& operator=(const RowSource&) = delete;

  const SourceId& id() const { return id_; }

  virtual SourceRows Peek() = 0;
  // Gives the oldest `n` rows back to the producer. CHECKs that they were peeked.
  virtual void Release(std::uint64_t n) = 0;
  // Whether Peek would find rows or an end at once. Asked with ingest's bell armed: what makes it
  // true later rings that bell, or is found by the Peek after the longest wait.
  virtual bool HasNews() = 0;

  // Sees what has been published since the last Peek; what was peeked stays as it is. For a caller
  // that takes nothing: Peek itself looks further only once all that it has seen is released.
  virtual void LookAgain() = 0;
  // Rows released, and rows published but not released, as far as Peek or LookAgain has seen.
  virtual std::uint64_t next_row() const = 0;
  virtual std::uint64_t backlog_rows() const = 0;
  // Published rows that the source holds at most.
  virtual std::uint64_t capacity_rows() const = 0;
  // The memory that rows are peeked in, whole pages of it; empty where a device could not read it
  // by itself.
  virtual std::span<std::byte> memory() { return {}; }
  // Why the source is kUnusable, for people.
  virtual const std::string& problem() const = 0;

  // The caller has taken its last row: removes what the source leaves on this host. False while
  // another process holds the folder's lock; try again.
  [[nodiscard]] virtual bool TryRemove() = 0;
  // As TryRemove; blocks for the lock, at most 30 s. Throws Error.
  virtual void Remove() = 0;

 private:
  const SourceId id_;
};

// Finds the sources that ingest reads, and hears which have ended.
class SourceFinder {
 public:
  virtual ~SourceFinder() = default;

  // --- ingest thread; nothing blocks ---
  // The sources that came since the last call. Cheap when nothing changed.
  virtual std::vector<std::unique_ptr<RowSource>> Poll() = 0;
  // A source that Poll returned has ended as `state` says; `reason` is for people.
  virtual void Ended(const SourceId& id, SourceState state, const std::string& reason) = 0;

  // --- any thread ---
  // Sources that should be there and are not yet; those given up so far.
  virtual std::uint64_t waiting() const = 0;
  virtual std::uint64_t given_up() const = 0;
};

}  // namespace tetrion::learner
