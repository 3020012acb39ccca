#pragma once

#include <string>

namespace tetrion {

// The section of docs/options.md on presets: a table with a row for each environment, and view of
// one, that has settings of its own (EnvEntry::preset, ViewEntry::preset), as options.
std::string PresetsMarkdown();

}  // namespace tetrion
