#pragma once

#include <map>
#include <string>
#include <vector>

#include "lib/run/setting_fields.h"

namespace tetrion {

// Settings of a TOML file by section; keys with underscores, values as text (strings without
// quotes). Those of [run.vtrace] stand in the section "run", as "vtrace.discount".
using ConfigSections = std::map<std::string, std::vector<Setting>>;

inline constexpr const char* kRunSection = "run";  // of the run settings

// Whether a config file may have the section.
bool IsConfigSection(const std::string& name);

// Reads a config file. Throws Error(kUsage) with file, line and reason: a file that cannot be read
// or is no regular file (a folder, a pipe), TOML errors, keys outside a section, unknown sections,
// values that are neither string, number nor boolean. Throws Error(kTryAgain) where the file cannot
// be read for now, as for want of descriptors.
ConfigSections ReadConfigFile(const std::string& path);

}  // namespace tetrion
