#pragma once

#include <atomic>
#include <cstdio>
#include <string>

#include "tools/eval/eval_options.h"

namespace tetrion {

// `eval`: plays the episodes, prints the summary to `out`. `play`: draws one lane to `out` at
// options.fps; clears the screen between frames when `out` is a terminal. With options.gif it plays
// as fast as it can into that file instead and prints one line. All return early, with what was
// finished, when `stop` turns true (looked at every row and at least every 50 ms).
// Throws Error: kUsage no such run, or a GIF that cannot be written; kConfig no checkpoint, a
// corrupt one, or one that does not fit.
int RunEval(const EvalOptions& options, const std::atomic<bool>& stop, std::FILE* out);
int RunPlay(const EvalOptions& options, const std::atomic<bool>& stop, std::FILE* out);

}  // namespace tetrion
