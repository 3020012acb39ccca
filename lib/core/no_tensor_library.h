#pragma once

#include <string>

namespace tetrion {

// What a program without the tensor library says to a user who wants `what` of it.
inline std::string NoTensorLibrary(const std::string& what) {
  return what +
         " needs the tensor library, and this program was built without: ./tetrion install wheels, "
         "then ./tetrion up builds programs with it; in containers use the image actor-torch "
         "(TETRION_ACTOR_IMAGE=actor-torch); of an actor the learner can decide instead "
         "(--inference streamed)";
}

}  // namespace tetrion
