#include "tests/support/source_file.h"

namespace tetrion::testing {

std::string SourceFile(std::string_view path) {
  return std::string(TETRION_SOURCE_DIR "/").append(path);
}

}  // namespace tetrion::testing
