#pragma once

#include <span>
#include <utility>

#include "lib/replay/event.h"
#include "lib/replay/selectors/selector.h"

namespace tetrion {

class ReplayGate;

// Keeps the rows of its windows from being overwritten until it is closed or destroyed. Move-only;
// reader thread. Must not outlive its gate.
class ReadLease {
 public:
  ReadLease() = default;
  ReadLease(ReadLease&& other) noexcept { *this = std::move(other); }
  ReadLease& operator=(ReadLease&& other) noexcept {
    if (this != &other) {
      Close();
      gate_ = std::exchange(other.gate_, nullptr);
      entry_ = other.entry_;
      windows_ = other.windows_;
      rows_ = other.rows_;
    }
    return *this;
  }
  ~ReadLease() { Close(); }

  explicit operator bool() const { return gate_ != nullptr; }
  // Valid while the lease is open: the gate's memory, used again by later leases.
  std::span<const Window> windows() const { return windows_; }
  // Rows of each window.
  int rows() const { return rows_; }

  // Lets the writer have the rows back: at once, or once `last_read`, recorded behind the reader's
  // last use of them, has passed. Returns at once. May be called twice; the second does nothing.
  void Close() { CloseAfter(nullptr); }
  void CloseAfter(const Event* last_read);

 private:
  friend class ReplayGate;
  ReadLease(ReplayGate* gate, int entry, std::span<const Window> windows, int rows)
      : gate_(gate), entry_(entry), windows_(windows), rows_(rows) {}

  ReplayGate* gate_ = nullptr;
  int entry_ = 0;
  std::span<const Window> windows_;
  int rows_ = 0;
};

}  // namespace tetrion
