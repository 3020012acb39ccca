# Writes OUT with revision, preset and version; leaves it alone when nothing changed, so that only a
# new revision recompiles anything. Without git or a repository the file REVISION of the source tree
# counts, and without that "unknown".
execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(revision unknown)
  if(EXISTS ${SOURCE_DIR}/REVISION)
    file(STRINGS ${SOURCE_DIR}/REVISION revision LIMIT_COUNT 1)
  endif()
else()
  execute_process(COMMAND git -C ${SOURCE_DIR} diff-index --quiet HEAD --
    OUTPUT_QUIET ERROR_QUIET RESULT_VARIABLE dirty)
  if(dirty)
    string(APPEND revision -dirty)
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} CONTENT [[
#pragma once

namespace tetrion {
inline constexpr const char* kRevisionText = "@revision@";
inline constexpr const char* kPresetText = "@PRESET@";
inline constexpr const char* kVersionText = "@VERSION@";
}  // namespace tetrion
]] @ONLY)
