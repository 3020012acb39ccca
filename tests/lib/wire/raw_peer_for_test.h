#pragma once

#include <gtest/gtest.h>
#include <zmq.h>

#include <cstddef>
#include <string>
#include <vector>

namespace tetrion::wire {

// A peer that is not ours: raw frames over a DEALER, one message a call.
class RawPeer {
 public:
  explicit RawPeer(const std::string& endpoint)
      : context_(zmq_ctx_new()), socket_(zmq_socket(context_, ZMQ_DEALER)) {
    const int linger = 0;
    zmq_setsockopt(socket_, ZMQ_LINGER, &linger, sizeof(linger));
    EXPECT_EQ(zmq_connect(socket_, endpoint.c_str()), 0);
  }
  ~RawPeer() {
    zmq_close(socket_);
    zmq_ctx_term(context_);
  }
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  void Send(const std::vector<std::vector<std::byte>>& frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const int more = i + 1 < frames.size() ? ZMQ_SNDMORE : 0;
      EXPECT_EQ(zmq_send(socket_, frames[i].data(), frames[i].size(), more),
                static_cast<int>(frames[i].size()));
    }
  }

 private:
  void* context_;
  void* socket_;
};

}  // namespace tetrion::wire
