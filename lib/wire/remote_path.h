#pragma once

#include <cstdint>
#include <string>

namespace tetrion::wire {

// The path that a worker of another host has in RingInfo, where a local worker has its ring's file:
// "remote:<process, 16 hex digits>.<worker>". It names no file; the rows come over the data channel
// (rows_messages.h).
std::string RemoteRingPath(std::uint64_t process, std::uint32_t worker);

// Whether `path` has that form, in the one spelling that RemoteRingPath gives it; fills what is not
// null.
bool IsRemoteRingPath(const std::string& path, std::uint64_t* process = nullptr,
                      std::uint32_t* worker = nullptr);

}  // namespace tetrion::wire
