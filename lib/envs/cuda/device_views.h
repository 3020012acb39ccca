#pragma once

#include "lib/frame/device_expand.h"
#include "lib/frame/specs.h"

namespace tetrion {

// What makes the view of `obs` of rows in device memory: `planes` and `vector`, and the views of
// records that device lanes draw. Throws Error(kUsage) naming the first two for another view.
DeviceExpandFn DeviceExpandOf(const ObsSpec& obs);

}  // namespace tetrion
