#pragma once

#include <atomic>
#include <cstdio>

#include "tools/stream/stream_options.h"

namespace tetrion {

// The commands of tetrion-stream. Each returns an exit code. kernel and host print one JSON line
// about what they did to `out`, also before they throw, and return early, in good order, when
// `stop` turns true. All throw Error with what is wrong, where, and what to do.

// Plays options.episodes or options.steps. Waits for a host at most options.wait_s. With
// options.stay a lost or misbehaving host is waited for again and again.
int RunKernel(const StreamOptions& options, const std::atomic<bool>& stop, std::FILE* out);
// Serves kernels until the last one has gone for options.peer_timeout_ms (without end with
// options.stay). A kernel that goes in the middle of an episode is an error without options.stay.
int RunHost(const StreamOptions& options, const std::atomic<bool>& stop, std::FILE* out);
// Prints everything that is in a region, whichever program uses it, and changes nothing. 78 when
// something is wrong with it, after naming it all.
int RunInspect(const StreamOptions& options, std::FILE* out);
// Prints docs/formats/region_v2.md.
int RunLayout(std::FILE* out);

}  // namespace tetrion
