#pragma once

#include <cstddef>
#include <string_view>

namespace tetrion {

// Forms of texts that come from outside and end up in file names, JSON, labels and logs. Pure.

// 1 to 64 letters, digits, '.', '_' or '-'.
bool IsName(std::string_view text);
// "host:port": a host of letters, digits, '.' and '-', or an IPv6 address in brackets, and a port
// of 1 to 65535.
bool IsHostPort(std::string_view text);
// Valid UTF-8 (RFC 3629: no surrogates, shortest form) without control characters.
bool IsPlainText(std::string_view text);

// The longest start of `text` that has at most `bytes` bytes and cuts no UTF-8 character.
std::string_view CutText(std::string_view text, std::size_t bytes);

}  // namespace tetrion
