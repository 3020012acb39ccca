#include "lib/run/setting_fields.h"

#include <algorithm>
#include <utility>

#include "lib/core/error.h"

namespace tetrion {

std::string AlgorithmOf(const std::string& key) {
  const auto dot = key.find('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

std::string NameOf(const std::string& key) {
  return key.substr(key.find('.') + 1);  // the whole key where there is none
}

std::string ExpectedText(const std::string& range, const std::string& unit, bool is_flag) {
  if (is_flag) return "true or false";
  if (range.empty()) return kPlainNames;
  const bool numeric = range.find(" to ") != std::string::npos;
  return (numeric ? "" : "one of ") + range + (unit.empty() ? "" : " " + unit);
}

SettingField& FieldCollector::Add(const char* name, FieldHelp help) {
  out_->push_back({.algorithm = algorithm_,
                   .name = name,
                   .help = help.text,
                   .may_change = help.may_change,
                   .joined_later = help.joined_later});
  return out_->back();
}

void FieldCollector::Flag(const char* name, bool& field, FieldHelp help) {
  SettingField& made = Add(name, help);
  made.is_flag = true;
  made.value = [&field] { return std::string(field ? "true" : "false"); };
  made.set = [&field](const std::string& text) { return ParseValue(text, field); };
}

void FieldCollector::Choice(const char* name, std::string& field, const std::string& allowed,
                            FieldHelp help) {
  SettingField& made = Add(name, help);
  made.is_text = true;
  made.range = allowed;
  made.value = [&field] { return field; };
  made.set = [&field, allowed](const std::string& text) {
    const bool known = IsOneOf(text, allowed);
    if (known) field = text;
    return known;
  };
}

void FieldCollector::Text(const char* name, std::string& field, FieldHelp help) {
  SettingField& made = Add(name, help);
  made.is_text = true;
  made.value = [&field] { return field; };
  made.set = [&field](const std::string& text) {
    const bool plain = IsPlainName(text);
    if (plain) field = text;
    return plain;
  };
}

const SettingField& FindField(const std::vector<SettingField>& fields, const std::string& key,
                              const std::string& algorithm) {
  const std::string owner = AlgorithmOf(key), name = NameOf(key);
  const SettingField* elsewhere = nullptr;
  for (const SettingField& field : fields) {
    const bool named = field.name == name && (owner.empty() || field.algorithm == owner);
    if (named && Concerns(field, algorithm)) return field;
    if (named) elsewhere = &field;
  }
  if (elsewhere == nullptr) throw Error(ExitCode::kUsage, "unknown run setting '" + key + "'");
  throw Error(ExitCode::kUsage, "run setting " + key + " is one of algorithm " +
                                    elsewhere->algorithm + ", the run's algorithm is " + algorithm +
                                    ": leave it out, or give --algo " + elsewhere->algorithm);
}

}  // namespace tetrion
