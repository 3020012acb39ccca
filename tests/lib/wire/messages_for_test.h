#pragma once

#include <vector>

#include "lib/wire/messages.h"

namespace tetrion::wire {

// One message of every kind with every field set, in the order of Message.
inline std::vector<Message> OneOfEach() {
  Bitmap bitmap(kRangeBitmapBytes);
  bitmap[0] = 5;
  bitmap[31] = 0x80;
  const std::vector<HeldRange> held = {{512, 3, bitmap}, {1024, 1, bitmap}};
  const std::vector<RingInfo> rings = {{"/dev/shm/tetrion-0/ring.a", 0, 4, 9},
                                       {"/dev/shm/tetrion-0/ring.b", 1, -1, 9}};
  std::vector<RingInfo> owned = rings;
  owned[0].owner = 9;
  owned[1].owner = (std::uint64_t{6} << 32) + 1;
  return {
      Register{Role::kLearner,
               "learner",
               "abc123",
               7,
               held,
               2048,
               2,
               rings,
               {{"lanes", "64"}, {"env", "cartpole"}},
               "127.0.0.1:9464",
               "/dev/shm/t",
               "learner.example:9001",
               "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7",
               3},
      Registered{1,
                 2,
                 "run",
                 3,
                 "/runs/run",
                 "lanes = 64\n",
                 "/dev/shm/t",
                 {0, 5},
                 1,
                 1001,
                 500,
                 5000,
                 "[::1]:9001",
                 "a key"},
      Refused{RefuseReason::kNoSlot, "no slot"},
      GrantRequest{9, 4, 2},
      Grant{9, 4, {{256, 256, 2, 500, bitmap}, {0, 256, 1, 500, {}}}},
      ReportBatch{9, 5, {{300, 2, 41, 3, 17, -1.5F, 6, 1}, {301, 2, 1, 0, 18, 2.5F, 63, 0}}, 44},
      ReportAck{9, 5, 1, 2, 3},
      Abandon{9, 6, "drain", held},
      AbandonAck{9, 6},
      Heartbeat{9, "running", 12345, 3, 44, 5, {{"rows", 1.5}, {"updates", -2}}, true, 77},
      HeartbeatAck{9, 2, true, 2001, 77, 1.25, 0.5, "10.0.0.7:9001", "another key"},
      RingList{9, 8, owned},
      RingsReady{9, rings},
      RingsAck{9},
      RingGone{9, "/dev/shm/tetrion-0/ring.a", RingEnd::kQuarantined, "row 3: NaN", 6},
      Goodbye{9, 54321},
      GoodbyeAck{9},
      Fenced{9}};
}

}  // namespace tetrion::wire
