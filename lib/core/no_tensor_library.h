#pragma once

#include <string>

namespace tetrion {

// What a program without the tensor library says to a user who wants `what` of it.
inline std::string NoTensorLibrary(const std::string& what) {
  return what +
         " needs the tensor library, which this program was built without; with it: ./tetrion "
         "install wheels, then ./tetrion up";
}

}  // namespace tetrion
