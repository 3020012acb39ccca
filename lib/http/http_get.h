#pragma once

#include <cstddef>
#include <string>

namespace tetrion {

// Of an answer with its headers: the status of thousands of members is far smaller.
inline constexpr std::size_t kMaxHttpAnswerBytes = std::size_t{16} << 20;

// GET http://<address><path>; the body of a 200. Throws Error(kTryAgain) with address and reason
// otherwise, kUsage where `address` is none. Blocks up to `timeout_ms` for looking up a name,
// connecting, writing and reading together, whatever peer and name server do. A name is looked up
// by a thread of its own, which goes on when the time is over: four of them at most. What it finds
// then is for the next question of the same address, if that comes within seconds.
std::string HttpGet(const std::string& address, const std::string& path, int timeout_ms);

}  // namespace tetrion
