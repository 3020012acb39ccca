#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tetrion::wire {

// Whether this machine has IPv6's own address.
inline bool HasIpv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 loopback{};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  const bool has =
      fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&loopback), sizeof loopback) == 0;
  if (fd >= 0) close(fd);
  return has;
}

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

// A TCP connection to a tcp:// endpoint on this host; the caller closes it.
inline int ConnectTo(const std::string& endpoint) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port =
      htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// A peer whose one message has no end, said in ZMTP 3.0 by hand (rfc.zeromq.org/spec/23): no ZeroMQ
// socket sends an unfinished message.
class EndlessPeer {
 public:
  // To a tcp:// endpoint on this host.
  explicit EndlessPeer(const std::string& endpoint) : socket_(ConnectTo(endpoint)) {
    std::string greeting = "\xff" + std::string(8, '\0') + "\x7f\x03" + std::string(53, '\0');
    greeting.replace(12, 4, "NULL");
    const std::string type(
        "\x05READY\x0bSocket-Type\0\0\0\x06"
        "DEALER",
        28);
    EXPECT_TRUE(Say(greeting + '\x04' + static_cast<char>(type.size()) + type));
    // Frames that come before the other end's own command has left are a breach to it.
    Hear(greeting.size());
    Hear(static_cast<std::size_t>(Hear(2)[1]));
  }
  ~EndlessPeer() { close(socket_); }
  EndlessPeer(const EndlessPeer&) = delete;
  EndlessPeer& operator=(const EndlessPeer&) = delete;

  // One more frame of 100 kB; false when the other end has hung up.
  bool SayMore() {
    // The flags "more" and "long", the size in 8 bytes, the frame.
    return Say(std::string("\x03\0\0\0\0\0\x01\x86\xa0", 9) + std::string(100'000, 'x'));
  }

 private:
  std::string Hear(std::size_t bytes) {
    std::string heard(bytes, '\0');
    EXPECT_EQ(recv(socket_, heard.data(), bytes, MSG_WAITALL), static_cast<ssize_t>(bytes));
    return heard;
  }
  bool Say(const std::string& bytes) {
    std::size_t said = 0;
    while (said < bytes.size()) {
      const ssize_t sent = send(socket_, bytes.data() + said, bytes.size() - said, MSG_NOSIGNAL);
      if (sent <= 0) return false;
      said += static_cast<std::size_t>(sent);
    }
    return true;
  }

  const int socket_;
};

}  // namespace tetrion::wire
