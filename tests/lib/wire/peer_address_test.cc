#include "lib/wire/peer_address.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace tetrion::wire {
namespace {

TEST(PeerAddressTest, ConnectionsPeerHasHostAndPort) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const of_any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, of_any, size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, of_any, &size), 0);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(fd, of_any, size), 0);
  EXPECT_EQ(PeerAddress(fd), "127.0.0.1 port " + std::to_string(ntohs(address.sin_port)));
  close(fd);
  EXPECT_EQ(PeerAddress(fd), "");
  close(listener);
}

TEST(PeerAddressTest, OtherFilesHaveNone) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_EQ(PeerAddress(ends[0]), "");
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(PeerAddress(STDIN_FILENO), "");
}

}  // namespace
}  // namespace tetrion::wire
