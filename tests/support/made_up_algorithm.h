#pragma once

#include <string>
#include <vector>

#include "lib/run/setting_fields.h"

namespace tetrion::testing {

// A second algorithm, which shares a setting with the first and has one of its own.
struct FirstSettings {
  double rate = 0.5;
  template <typename Visitor>
  void Visit(Visitor&& v) {
    v.Number("rate", rate, 0.0, 1.0, "", MayChange("step size"));
  }
};
struct SecondSettings {
  double rate = 4;
  int horizon = 15;
  template <typename Visitor>
  void Visit(Visitor&& v) {
    v.Number("rate", rate, 0.0, 10.0, "", MayChange("step size of the model"));
    v.Number("horizon", horizon, 1, 100, "steps", "imagined steps");
  }
};

// A run that may choose either.
struct MadeUpRun {
  int lanes = 4;
  FirstSettings first;
  SecondSettings second;

  std::vector<SettingField> Fields() {
    std::vector<SettingField> fields;
    FieldCollector("", &fields).Number("lanes", lanes, 1, 8, "lanes", "how many");
    first.Visit(FieldCollector("first", &fields));
    second.Visit(FieldCollector("second", &fields));
    return fields;
  }
};

}  // namespace tetrion::testing
