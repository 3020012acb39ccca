#pragma once

#include <atomic>
#include <cstdio>

#include "tools/eval/eval_options.h"

namespace tetrion {

// `dream`: plays one episode of at most options.steps actions, has the checkpoint's world model see
// its first options.context rows and imagine the others from the actions that were taken, and
// prints the error of each row; with options.gif it draws them, too. Ends early with
// Error(kTryAgain) when `stop` turns true before the episode is played.
// Throws Error: kUsage no such run, one without a world model, too short an episode, or a GIF that
// cannot be written; kConfig no checkpoint, a corrupt one, or one that does not fit.
int RunDream(const EvalOptions& options, const std::atomic<bool>& stop, std::FILE* out);

}  // namespace tetrion
