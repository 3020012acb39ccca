#pragma once

#include <vector>

#include "lib/wire/remote_path.h"
#include "lib/wire/rows_messages.h"

namespace tetrion::wire {

// One message of every kind with every field set, in the order of RowsMessage.
inline std::vector<RowsMessage> OneOfEachRowsMessage() {
  const std::string path = RemoteRingPath(0xabc, 3);
  return {OpenRows{path, 4096, 0x1234567890abcdef, 17},
          RowBatch{5, 100, 16, RowsPacking::kZstd},
          CloseRows{5, 116},
          RowsPing{12},
          WeightsGet{9, 2},
          RowsOpened{path, 5, 100, 90, 256},
          OpenRefused{path, "rows have 4096 bytes, the run's 8192", true},
          RowsAck{{{5, 116, 100, false}, {6, 7, 7, true}}, 9, 12},
          StreamUnknown{5},
          WeightsChunk{9, 2, 600'000, 0xfedcba0987654321},
          WeightsGone{9, 11},
          WeightsRefused{9, "no stream"}};
}

}  // namespace tetrion::wire
