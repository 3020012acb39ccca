#include "lib/run/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "lib/core/error.h"
#include "lib/core/file.h"
#include "lib/run/value_text.h"

namespace tetrion {
namespace {

constexpr std::array kSections = {kRunSection, "coordinator", "actor", "learner", "up"};

[[noreturn]] void RefuseAt(const std::string& path, const toml::source_region& at,
                           const std::string& reason) {
  throw Error(ExitCode::kUsage, path + ":" + std::to_string(at.begin.line) + ": " + reason);
}

std::string TextOf(const toml::node& node, const std::string& path, const std::string& key) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return ValueText(integer->get());
  if (const auto* number = node.as_floating_point()) return ValueText(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  RefuseAt(path, node.source(), key + ": expected a string, a number or true or false");
}

// The keys of a table; where it `has_parts` also those of the tables in it, "part.key".
void Collect(const toml::table& table, const std::string& path, const std::string& prefix,
             bool has_parts, std::vector<Setting>& settings) {
  for (const auto& [name, node] : table) {
    std::string key(name.str());
    std::replace(key.begin(), key.end(), '-', '_');
    const toml::table* part = has_parts ? node.as_table() : nullptr;
    if (part != nullptr) {
      Collect(*part, path, key + '.', /*has_parts=*/false, settings);
    } else {
      settings.push_back({prefix + key, TextOf(node, path, key)});
    }
  }
}

[[noreturn]] void CannotRead(const std::string& path, const std::string& reason,
                             ExitCode code = ExitCode::kUsage) {
  throw Error(code, "cannot read the config file " + path + ": " + reason);
}

[[noreturn]] void CannotRead(const std::string& path, int error) {
  CannotRead(path, std::strerror(error), CodeOfFault(error, ExitCode::kUsage));
}

// All of a regular file. The parser would take a folder for an empty file. A pipe can be read once
// only, and `up` and each service read the file, so that the others would find it empty.
std::string TextOfFile(const std::string& path) {
  // Opening a pipe must not wait for its writer.
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status{};
  if (!file.valid() || fstat(file.get(), &status) != 0) CannotRead(path, errno);
  if (S_ISDIR(status.st_mode)) CannotRead(path, "it is a folder");
  if (!S_ISREG(status.st_mode)) {
    CannotRead(path, "it is no regular file, and may be read more than once: give a file's path");
  }
  std::string text;
  if (!ReadRest(file.get(), text)) CannotRead(path, errno);
  return text;
}

toml::table ParseFile(const std::string& path) {
  try {
    return toml::parse(TextOfFile(path), path);
  } catch (const toml::parse_error& error) {
    RefuseAt(path, error.source(), std::string(error.description()));
  }
}

}  // namespace

bool IsConfigSection(const std::string& name) {
  return std::any_of(kSections.begin(), kSections.end(),
                     [&](const char* section) { return name == section; });
}

ConfigSections ReadConfigFile(const std::string& path) {
  const toml::table file = ParseFile(path);
  ConfigSections sections;
  for (const auto& [name, node] : file) {
    const std::string section(name.str());
    const toml::table* table = node.as_table();
    if (!IsConfigSection(section) || table == nullptr) {
      RefuseAt(path, node.source(),
               (table == nullptr ? "key outside a section: " : "unknown section: ") + section +
                   "; sections are [run] [run.ALGORITHM] [coordinator] [actor] [learner] [up]");
    }
    Collect(*table, path, "", section == kRunSection, sections[section]);
  }
  return sections;
}

}  // namespace tetrion
