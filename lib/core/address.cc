#include "lib/core/address.h"

#include <unistd.h>

#include <array>
#include <charconv>
#include <system_error>

#include "lib/core/error.h"
#include "lib/core/text_forms.h"

namespace tetrion {
namespace {

constexpr std::size_t kMaxHostNameBytes = 256;

// Where ":port" begins; the text's end without one.
std::size_t PortAt(const std::string& address) {
  const auto colon = address.rfind(':');
  return colon == std::string::npos ? address.size() : colon;
}

bool IsEveryHost(const std::string& host) {
  return host == "0.0.0.0" || host == "[::]" || host == "*";
}

std::string HostName() {
  std::array<char, kMaxHostNameBytes> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

}  // namespace

HostPort ParseHostPort(const std::string& what, const std::string& address) {
  const auto colon = address.rfind(':');
  HostPort parsed;
  const char* end = address.data() + address.size();
  const auto number = colon == std::string::npos
                          ? std::from_chars_result{nullptr, std::errc::invalid_argument}
                          : std::from_chars(address.data() + colon + 1, end, parsed.port);
  const bool bracketed = address.starts_with('[');
  const bool plain_ipv6 = !bracketed && colon != address.find(':');
  if (number.ec != std::errc() || number.ptr != end || colon == 0 || plain_ipv6) {
    throw Error(ExitCode::kUsage,
                what + " address '" + address +
                    "': expected host:port, such as 127.0.0.1:9464 (port 0 takes a free one), "
                    "IPv6 in brackets");
  }
  parsed.host = address.substr(0, colon);
  if (bracketed && parsed.host.back() == ']') {
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  }
  return parsed;
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
