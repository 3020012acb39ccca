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

// What an address of tcp:// is for: port 0 and the host * are a listener's alone.
enum class TcpUse { kListen, kConnect };
// Throws Error(kUsage) naming `option` unless `endpoint` is empty, of ipc:// or of tcp:// with one
// host and port: ZeroMQ makes another port of 70000, and another host of "a:1;b:2".
void CheckEndpoint(const std::string& option, const std::string& endpoint, TcpUse use);

// Whether the host of "tcp://host:port" is another machine, and whether that of "host:port" is this
// machine to itself alone.
bool IsElsewhere(const std::string& endpoint);
bool IsLoopback(const std::string& address);
// Whether "tcp://host:port" names its host, whose address has to be looked up.
bool NamesHost(const std::string& endpoint);

// The address that others are told of a service that listens at `bound`: `wanted`, "host" or
// "host:port", where it is not empty; else `bound`, with this machine's name for a host that stands
// for every address. Throws Error(kUsage) naming `option` when wish or name make no address.
std::string Advertised(const std::string& option, const std::string& wanted,
                       const std::string& bound);

// The address at which the machine itself reaches a service that listens at `bound`.
std::string FromHere(const std::string& bound);

}  // namespace tetrion
