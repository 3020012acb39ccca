#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/core/setting_visitor.h"
#include "lib/run/value_text.h"

namespace tetrion {

// One setting the user gave, as texts. The key is "lanes", or "vtrace.discount" for a setting of an
// algorithm; "discount" alone names the setting of the run's own algorithm. Words are joined by
// underscores.
struct Setting {
  std::string key;
  std::string value;
};

// The two parts of a key: "vtrace" (empty for a key of one part) and "discount".
std::string AlgorithmOf(const std::string& key);
std::string NameOf(const std::string& key);

// One field of a struct of settings, bound to the object that it was collected from, which must
// outlive it: what options, config file, canonical text, hash and docs are made from.
struct SettingField {
  std::string algorithm;  // whose setting it is; empty: common to all
  std::string name;
  std::string help;
  std::string range;  // "1 to 4096", "a|b|c"; empty for flags and texts
  std::string unit;
  bool may_change = false;    // when a run is resumed
  bool joined_later = false;  // runs that were made without it have its default
  bool is_flag = false;
  bool is_text = false;  // in quotes where it is written as TOML
  std::function<std::string()> value;
  std::function<bool(const std::string&)> set;  // false: refused, the field as it was
};

// What a value of that range must be: "1 to 64 lanes", "one of a|b", "true or false".
std::string ExpectedText(const std::string& range, const std::string& unit, bool is_flag);

// The visitor (lib/core/setting_visitor.h) that collects a struct's fields. One thread.
class FieldCollector {
 public:
  FieldCollector(std::string algorithm, std::vector<SettingField>* out)
      : algorithm_(std::move(algorithm)), out_(out) {}

  template <typename T>
  void Number(const char* name, T& field, T min, T max, const char* unit, FieldHelp help) {
    SettingField& made = Add(name, help);
    made.range = RangeText(min, max);
    made.unit = unit;
    made.value = [&field] { return ValueText(field); };
    made.set = [&field, min, max](const std::string& text) {
      return ParseValue(text, min, max, field);
    };
  }
  void Flag(const char* name, bool& field, FieldHelp help);
  void Choice(const char* name, std::string& field, const std::string& allowed, FieldHelp help);
  void Text(const char* name, std::string& field, FieldHelp help);

 private:
  SettingField& Add(const char* name, FieldHelp help);

  const std::string algorithm_;
  std::vector<SettingField>* const out_;
};

// Whether a run of `algorithm` has the field: it is common, or the algorithm's.
inline bool Concerns(const SettingField& field, const std::string& algorithm) {
  return field.algorithm.empty() || field.algorithm == algorithm;
}
// The field that a key names in a run of `algorithm`. Throws Error(kUsage): there is none, or it is
// another algorithm's (both are named).
const SettingField& FindField(const std::vector<SettingField>& fields, const std::string& key,
                              const std::string& algorithm);

}  // namespace tetrion
