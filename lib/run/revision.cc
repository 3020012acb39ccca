#include "lib/run/revision.h"

// Written into the build folder by write_revision.cmake.
#include "generated/revision_text.h"

namespace tetrion {

const char* Revision() {
  return kRevisionText;
}
const char* Preset() {
  return kPresetText;
}
const char* Version() {
  return kVersionText;
}

}  // namespace tetrion
