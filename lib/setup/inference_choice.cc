#include "lib/setup/inference_choice.h"

namespace tetrion {

void AddInference(ServiceOptions& parser, InferenceChoice& choice) {
  parser.Add("inference", &choice.inference,
             "who decides: local, the actors' workers with the newest weights; streamed, the "
             "learner",
             {"local", "streamed"});
}

void AddGroups(ServiceOptions& parser, InferenceChoice& choice) {
  parser.Add("groups", &choice.groups,
             "streamed: lane groups of a worker thread, each with its lanes, ring and replay slot; "
             "one steps while another waits for its actions",
             1, 16, "groups");
}

}  // namespace tetrion
