#pragma once

#include <string>

namespace tetrion {

// docs/formats/region_v2.md: the picture, the tables of offsets and a worked example in hex, all
// from the constants and structs of lib/region_v2/compat_layout.h and compat_blocks.h.
std::string RegionDoc();

}  // namespace tetrion
