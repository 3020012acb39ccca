#include "lib/run/config_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <array>

#include "lib/core/error.h"
#include "lib/run/value_text.h"

namespace tetrion {
namespace {

constexpr std::array kSections = {"run", "coordinator", "actor", "learner", "up"};

[[noreturn]] void Refuse(const std::string& path, const toml::source_region& at,
                         const std::string& reason) {
  throw Error(ExitCode::kUsage, path + ":" + std::to_string(at.begin.line) + ": " + reason);
}

std::string TextOf(const toml::node& node, const std::string& path, const std::string& key) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) return ValueText(integer->get());
  if (const auto* number = node.as_floating_point()) return ValueText(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  Refuse(path, node.source(), key + ": expected a string, a number or true or false");
}

toml::table ParseFile(const std::string& path) {
  try {
    return toml::parse_file(path);
  } catch (const toml::parse_error& error) {
    if (error.source().begin.line == 0) {
      throw Error(ExitCode::kUsage, "cannot read the config file " + path);
    }
    Refuse(path, error.source(), std::string(error.description()));
  }
}

}  // namespace

ConfigSections ReadConfigFile(const std::string& path) {
  const toml::table file = ParseFile(path);
  ConfigSections sections;
  for (const auto& [name, node] : file) {
    const std::string section(name.str());
    const bool known = std::any_of(kSections.begin(), kSections.end(),
                                   [&](const char* one) { return section == one; });
    const toml::table* table = node.as_table();
    if (!known || table == nullptr) {
      Refuse(path, node.source(),
             (table == nullptr ? "key outside a section: " : "unknown section: ") + section +
                 "; sections are [run] [coordinator] [actor] [learner] [up]");
    }
    std::vector<Setting>& settings = sections[section];
    for (const auto& [key_name, value] : *table) {
      std::string key(key_name.str());
      std::replace(key.begin(), key.end(), '-', '_');
      settings.push_back({key, TextOf(value, path, key)});
    }
  }
  return sections;
}

}  // namespace tetrion
