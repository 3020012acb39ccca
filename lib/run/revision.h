#pragma once

namespace tetrion {

// Git revision the binary was built from ("1a2b3c4d5e6f", "-dirty" appended when tracked files
// differed, "unknown" outside a repository), the preset, and the project's version.
const char* Revision();
const char* Preset();
const char* Version();

}  // namespace tetrion
