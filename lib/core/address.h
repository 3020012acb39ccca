#pragma once

#include <cstdint>
#include <string>

namespace tetrion {

// "host:port" texts of what a service listens at. A host of 0.0.0.0, [::] or * stands for every
// address of the machine: one listens there, but it is no address to tell another machine.

struct HostPort {
  std::string host;  // IPv6 without its brackets
  std::uint16_t port = 0;
};
// The parts of `address`; port 0 is one. Throws Error(kUsage) naming `what` it is of, such as
// "HTTP", and what is expected.
HostPort ParseHostPort(const std::string& what, const std::string& address);

// The address that others are told of a service that listens at `bound`: `wanted`, "host" or
// "host:port", where it is not empty; else `bound`, with this machine's name for a host that stands
// for every address. Throws Error(kUsage) naming `option` when wish or name make no address.
std::string Advertised(const std::string& option, const std::string& wanted,
                       const std::string& bound);

// The address at which the machine itself reaches a service that listens at `bound`.
std::string FromHere(const std::string& bound);

}  // namespace tetrion
