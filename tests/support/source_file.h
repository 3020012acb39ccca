#pragma once

#include <string>
#include <string_view>

namespace tetrion::testing {

// Where the file `path` of the tree lies that this test was built from; "docs/options.md".
std::string SourceFile(std::string_view path);

}  // namespace tetrion::testing
