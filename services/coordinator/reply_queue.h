#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>

#include "lib/wire/socket.h"

namespace tetrion::coordinator {

// Replies that wait until the store has committed what they promise. Bounded: a reply for which
// there is no room is dropped, and its member asks again. Control agent only.
class ReplyQueue {
 public:
  static constexpr std::size_t kMaxReplies = 8192;

  struct Reply {
    std::uint64_t ticket = 0;
    wire::PeerId peer;
    std::uint64_t session = 0;  // dropped when this one is fenced meanwhile; 0: never
    wire::Message message;
  };

  // False when the queue is full.
  bool Add(Reply reply) {
    if (replies_.size() >= kMaxReplies) return false;
    // Tickets are pushed in order; a reply that waits for an older one goes behind the newest.
    if (!replies_.empty()) reply.ticket = std::max(reply.ticket, replies_.back().ticket);
    replies_.push_back(std::move(reply));
    return true;
  }
  // Hands out, in order, every reply whose ticket is committed. Returns how many.
  template <typename Send>
  int TakeCommitted(std::uint64_t committed, Send&& send) {
    int taken = 0;
    for (; !replies_.empty() && replies_.front().ticket <= committed; ++taken) {
      const Reply reply = std::move(replies_.front());
      replies_.pop_front();
      send(reply);
    }
    return taken;
  }
  bool empty() const { return replies_.empty(); }
  std::size_t size() const { return replies_.size(); }

 private:
  std::deque<Reply> replies_;
};

}  // namespace tetrion::coordinator
