#include "lib/rl/sequence_batch.h"

#include "tests/lib/replay/host_memory.h"
#include "tests/lib/rl/sequence_batch_suite.h"

namespace tetrion::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Host, SequenceBatchSuite, HostMemory);

}  // namespace tetrion::testing
