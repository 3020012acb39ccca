#pragma once

#include <string>
#include <vector>

namespace tetrion {

// Options as environment variables: TETRION_RING_ROWS is --ring-rows. An empty variable counts as
// none, since compose files hand on variables that are not set as empty ones. One thread, that of
// main: the environment and what is remembered here belong to the process.

struct Variable {
  std::string name;    // "TETRION_RING_ROWS"
  std::string option;  // "ring-rows"
  std::string value;
};

// "TETRION_RING_ROWS" for "ring-rows".
std::string VariableFor(const std::string& option);

// The variables of this process that may be options, by name: those that begin with TETRION_, but
// for the ones that scripts, builds and tests read.
std::vector<Variable> OptionVariables();

// Whether some program of the project has the option. A program knows only its own from
// declarations; those of all programs come out of docs/options.md when this is built.
bool IsOptionOfSomeProgram(const std::string& option);
// What is to be said of a variable that no program reads, with the nearest that one does.
std::string UnknownVariableText(const Variable& variable);

// Takes the options of all programs out of the environment: for a program that starts others and
// tells them by flags what they shall have.
void ForgetOptionVariables();

// Remembers for NoteOnVariables that the variable gave an option its value.
void RememberUse(const Variable& variable);
// Where a complaint names options (`--lanes`, `lanes:`, `lanes =`) that variables gave, says so:
// " (lanes is from TETRION_LANES)". Else empty.
std::string NoteOnVariables(const std::string& complaint);

}  // namespace tetrion
