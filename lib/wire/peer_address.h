#pragma once

#include <string>

namespace tetrion::wire {

// Who is at the other end of a TCP connection, for people: "10.0.0.7 port 4711". Empty where the
// kernel knows no such end: the connection is over, or the file is none.
std::string PeerAddress(int fd);

}  // namespace tetrion::wire
