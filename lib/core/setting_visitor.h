#pragma once

namespace tetrion {

// How a struct of settings declares its fields. The member
//   template <typename Visitor> void Visit(Visitor&& v)
// calls the visitor once per field, in declaration order. A visitor has:
//   Number(key, field, min, max, unit, help)   int, uint32, uint64, double
//   Flag(key, field, help)                     bool
//   Choice(key, field, "a|b|c", help)          std::string, one of the values
//   Text(key, field, help)                     std::string of [A-Za-z0-9_.-], 1 to 64 of them

// What a field means, and whether a run that is resumed may have another value. `help` of a visitor
// is a text, or MayChange(text) for settings that nothing which outlives a process depends on, or
// JoinedLater(text) for one that runs were made without: they have its default. Of a new setting
// that may change, nothing needs to say so: it is not in the run's hash (RunConfigHash).
struct FieldHelp {
  // Not explicit: a plain text is a field that stays for the run's life.
  constexpr FieldHelp(const char* meaning, bool changes = false, bool later = false)
      : text(meaning), may_change(changes), joined_later(later) {}
  const char* text;
  bool may_change;
  bool joined_later;
};
constexpr FieldHelp MayChange(const char* text) {
  return {text, true};
}
constexpr FieldHelp JoinedLater(const char* text) {
  return {text, false, true};
}

}  // namespace tetrion
