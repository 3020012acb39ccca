#include "lib/run/environment.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "lib/run/option_list.h"

// Written into the build folder from docs/options.md.
#include "generated/option_names.h"

namespace tetrion {
namespace {

constexpr std::string_view kPrefix = "TETRION_";

// Read by ./tetrion and .ci/run, by CMake presets of people, by tests and by benchmarks.
constexpr std::array<std::string_view, 15> kNoOptions = {
    "TETRION_BENCH",    "TETRION_CUDA",       "TETRION_DEFAULT_RUNS_DIR", "TETRION_ENVPOOL_PYTHON",
    "TETRION_JOBS",     "TETRION_NATIVE",     "TETRION_POLICY_REFERENCE", "TETRION_PYTHON",
    "TETRION_SANITIZE", "TETRION_SCRIPT",     "TETRION_SIM_SEED",         "TETRION_TORCH",
    "TETRION_WHEELS",   "TETRION_TORCH_ROOT", "TETRION_WRITE_GOLDEN",
};

std::vector<Variable>& Used() {
  static std::vector<Variable> used;
  return used;
}

// "ring-rows" for "TETRION_RING_ROWS".
std::string OptionFor(std::string_view variable) {
  std::string option(variable.substr(kPrefix.size()));
  std::transform(option.begin(), option.end(), option.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return DashesFor(option);
}

bool IsOfAWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
}

// Whether the text holds `words` and none of the words around them goes on.
bool Names(const std::string& text, const std::string& words) {
  for (auto at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    const std::size_t end = at + words.size();
    const bool begins = at == 0 || !IsOfAWord(text[at - 1]);
    if (begins && (end == text.size() || !IsOfAWord(text[end]))) return true;
  }
  return false;
}

}  // namespace

std::string VariableFor(const std::string& option) {
  std::string name = KeyFor(option);
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return std::string(kPrefix) + name;
}

std::vector<Variable> OptionVariables() {
  std::vector<Variable> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (!text.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals), value = text.substr(equals + 1);
    if (value.empty() || std::count(kNoOptions.begin(), kNoOptions.end(), name) > 0) continue;
    variables.push_back({std::string(name), OptionFor(name), std::string(value)});
  }
  std::sort(variables.begin(), variables.end(),
            [](const Variable& a, const Variable& b) { return a.name < b.name; });
  return variables;
}

bool IsOptionOfSomeProgram(const std::string& option) {
  return std::count(kOptionNames.begin(), kOptionNames.end(), option) > 0;
}

std::string UnknownVariableText(const Variable& variable) {
  const std::string nearest =
      NearestName(variable.option, {kOptionNames.begin(), kOptionNames.end()});
  return "the environment has " + variable.name + ", which no program reads" +
         DidYouMean("", nearest.empty() ? "" : VariableFor(nearest));
}

void ForgetOptionVariables() {
  for (const Variable& variable : OptionVariables()) {
    if (IsOptionOfSomeProgram(variable.option)) unsetenv(variable.name.c_str());
  }
}

void RememberUse(const Variable& variable) {
  Used().push_back(variable);
}

std::string NoteOnVariables(const std::string& complaint) {
  std::string note;
  for (const Variable& variable : Used()) {
    const std::string key = KeyFor(variable.option);
    const bool named = Names(complaint, "--" + variable.option) ||
                       complaint.find(' ' + key + ": ") != std::string::npos ||
                       complaint.find(' ' + key + " = ") != std::string::npos;
    if (!named || Names(complaint, variable.name)) continue;
    note += (note.empty() ? "" : ", ") + key + " is from " + variable.name;
  }
  return note.empty() ? "" : " (" + note + ")";
}

}  // namespace tetrion
