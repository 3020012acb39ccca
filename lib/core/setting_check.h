#pragma once

#include <sstream>
#include <string>

#include "lib/core/setting_visitor.h"
#include "lib/core/text_forms.h"

namespace tetrion {

// The visitor (lib/core/setting_visitor.h) that judges fields by their declarations: for structs
// that did not come from texts, which lib/run judges when it reads them.
class SettingCheck {
 public:
  // "discount: expected 0 to 1, is 1.5" of the first field that is out of its range; empty when
  // none is. NaN is out of every range.
  const std::string& problem() const { return problem_; }

  template <typename T>
  void Number(const char* name, const T& field, T min, T max, const char*, FieldHelp) {
    if (field >= min && field <= max) return;
    std::ostringstream range;
    range << min << " to " << max << ", is " << field;
    Refuse(name, range.str());
  }
  void Flag(const char*, bool, FieldHelp) {}
  void Choice(const char* name, const std::string& field, const std::string& allowed, FieldHelp) {
    const bool one = IsName(field) && ('|' + allowed + '|').find('|' + field + '|') != allowed.npos;
    if (!one) Refuse(name, "one of " + allowed + ", is '" + field + "'");
  }
  void Text(const char* name, const std::string& field, FieldHelp) {
    if (!IsName(field)) Refuse(name, "1 to 64 letters, digits, '.', '_' or '-'");
  }

 private:
  void Refuse(const char* name, const std::string& expected) {
    if (problem_.empty()) problem_ = std::string(name) + ": expected " + expected;
  }

  std::string problem_;
};

}  // namespace tetrion
