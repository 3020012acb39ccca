#pragma once

#include <string>

#include "lib/run/options.h"
#include "tools/up/up_options.h"

namespace tetrion {

// The sections that a config file has for actors and the learner, as far as `up` has a say in them.
// For after parsing; does nothing without a config file.
//
// Throws Error(kUsage), naming file, section, key and what to write instead: a key that `up` plans
// with and tells the service itself, and one that [up] has, too. Of the others that the learner and
// `up` share, `options` takes the learner's where `up` was told none: the plan follows from them.
void HearServiceSections(const ServiceOptions& parser, UpOptions& options);

}  // namespace tetrion
