#include "lib/core/address.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <system_error>

#include "lib/core/error.h"
#include "lib/core/text_forms.h"

namespace tetrion {
namespace {

constexpr std::size_t kMaxHostNameBytes = 256;
const std::string kTcp = "tcp://", kIpc = "ipc://";
// Of a name, an address or an interface, and of what stands in brackets, with its zone.
constexpr const char* kHostBytes =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
constexpr const char* kIpv6Bytes =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";

// Where ":port" begins; the text's end without one.
std::size_t PortAt(const std::string& address) {
  const auto colon = address.rfind(':');
  return colon == std::string::npos ? address.size() : colon;
}

bool IsEveryHost(const std::string& host) {
  return host == "0.0.0.0" || host == "[::]" || host == "*";
}

// Nothing for what is no host:port.
std::optional<HostPort> PartsOf(const std::string& address) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  HostPort parsed;
  const char* end = address.data() + address.size();
  const auto number = std::from_chars(address.data() + colon + 1, end, parsed.port);
  const bool bracketed = address.starts_with('[');
  const bool plain_ipv6 = !bracketed && colon != address.find(':');
  if (number.ec != std::errc() || number.ptr != end || plain_ipv6) return std::nullopt;
  parsed.host = address.substr(0, colon);
  if (bracketed) {
    if (parsed.host.back() != ']') return std::nullopt;
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  }
  return parsed;
}

std::string HostName() {
  std::array<char, kMaxHostNameBytes> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

}  // namespace

HostPort ParseHostPort(const std::string& what, const std::string& address) {
  const std::optional<HostPort> parsed = PartsOf(address);
  if (parsed.has_value()) return *parsed;
  throw Error(ExitCode::kUsage,
              what + " address '" + address +
                  "': expected host:port, such as 127.0.0.1:9464 (port 0 takes a free one), "
                  "IPv6 in brackets");
}

void CheckEndpoint(const std::string& option, const std::string& endpoint, TcpUse use) {
  if (endpoint.empty() || endpoint.starts_with(kIpc)) return;
  if (!endpoint.starts_with(kTcp)) {
    throw Error(ExitCode::kUsage,
                option + " " + endpoint + ": expected tcp://host:port or ipc:///path");
  }
  const std::string address = endpoint.substr(kTcp.size());
  const std::optional<HostPort> parsed = PartsOf(address);
  const bool listens = use == TcpUse::kListen;
  if (parsed.has_value() && !parsed->host.empty() && (listens || parsed->port != 0)) {
    const bool every_host = listens && parsed->host == "*";
    const char* const bytes = address.starts_with('[') ? kIpv6Bytes : kHostBytes;
    if (every_host || parsed->host.find_first_not_of(bytes) == std::string::npos) return;
  }
  throw Error(ExitCode::kUsage, option + " " + endpoint +
                                    ": expected tcp://host:port with one host, IPv6 in brackets, "
                                    "and a port of " +
                                    (listens ? "0 (a free one) to 65535" : "1 to 65535"));
}

bool IsElsewhere(const std::string& endpoint) {
  return endpoint.starts_with(kTcp) && !IsLoopback(endpoint.substr(kTcp.size()));
}

bool IsLoopback(const std::string& address) {
  const std::string host = address.substr(0, PortAt(address));
  in_addr ipv4{};  // of which 127.0.0.0/8 is this machine; a name may begin with 127., too
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) return ntohl(ipv4.s_addr) >> 24 == 127;
  return host == "localhost" || host == "[::1]";
}

bool NamesHost(const std::string& endpoint) {
  if (!endpoint.starts_with(kTcp)) return false;
  const std::string address = endpoint.substr(kTcp.size());
  const std::string host = address.substr(0, PortAt(address));
  in_addr ignored{};
  return !host.starts_with('[') && inet_pton(AF_INET, host.c_str(), &ignored) != 1;
}

std::string Advertised(const std::string& option, const std::string& wanted,
                       const std::string& bound) {
  const std::string host = bound.substr(0, PortAt(bound)), port = bound.substr(PortAt(bound));
  const bool as_bound = wanted.empty() && !IsEveryHost(host);
  const std::string told = as_bound             ? bound
                           : wanted.empty()     ? HostName() + port
                           : IsHostPort(wanted) ? wanted
                                                : wanted + port;
  if (IsHostPort(told)) return told;
  if (as_bound) {
    throw Error(ExitCode::kUsage, "'" + bound +
                                      "' makes no address that others can be told: say with " +
                                      option + " host[:port] where they reach it");
  }
  if (wanted.empty()) {
    throw Error(ExitCode::kUsage, "this machine's name makes no address, '" + told +
                                      "': say with " + option +
                                      " host[:port] where others reach it");
  }
  throw Error(ExitCode::kUsage, option + " " + wanted +
                                    ": expected host or host:port, a name of letters, digits, '.' "
                                    "and '-', or an address, IPv6 in brackets");
}

std::string FromHere(const std::string& bound) {
  const std::string host = bound.substr(0, PortAt(bound)), port = bound.substr(PortAt(bound));
  if (host == "[::]") return "[::1]" + port;
  return IsEveryHost(host) ? "127.0.0.1" + port : bound;
}

}  // namespace tetrion
