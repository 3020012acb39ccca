#include "lib/region_v2/compat_parts.h"

#include "lib/core/check.h"
#include "lib/core/error.h"
#include "lib/region_v2/compat_region.h"

namespace tetrion {
namespace {

enum RingNumber : std::size_t { kCommand, kResponse, kObs, kAction };

void AddSigns(CompatRingHeader& header, RingNumber ring, CompatLifeSigns& producer,
              CompatLifeSigns& consumer) {
  producer.beat[ring] = &header.producer_beat;
  producer.index[ring] = &header.head;
  consumer.beat[ring] = &header.consumer_beat;
  consumer.index[ring] = &header.tail;
}

}  // namespace

CompatParts::CompatParts(std::span<std::byte> region, const Clock& ends_clock)
    : memory(region), clock(ends_clock) {
  std::string problems;
  for (const std::string& problem : CompatProblems(region)) {
    problems += (problems.empty() ? "" : "; ") + problem;
  }
  if (!problems.empty()) throw Error(ExitCode::kConfig, "unusable region: " + problems);
  std::byte* base = region.data();
  doorbell = reinterpret_cast<CompatDoorbellBlock*>(base + kCompatDoorbell);
  command = CompatCommandRing::Attach(base + kCompatCommandRing, kCompatCommandMagic,
                                      kCompatCommandEntries, clock);
  response = CompatResponseRing::Attach(base + kCompatResponseRing, kCompatResponseMagic,
                                        kCompatCommandEntries, clock);
  if (!command.valid() || !response.valid())
    throw Error(ExitCode::kConfig, "unusable region: its rings changed while they were checked");
  obs_bell = CompatBell(doorbell->obs_doorbell, doorbell->kernel_asleep);
  action_bell = CompatBell(doorbell->action_doorbell, doorbell->host_asleep);
  AddSigns(command.header(), kCommand, kernel_signs, host_signs);
  AddSigns(response.header(), kResponse, host_signs, kernel_signs);
  AttachStream();
}

bool CompatParts::AttachStream() {
  if (obs.valid() && action.valid()) return true;
  const std::optional<CompatStreamPlace> place = FindCompatStream(memory);
  if (!place) return false;
  obs = CompatObsRing::Attach(memory.data() + place->obs, kCompatStreamMagic, kCompatStreamEntries,
                              clock);
  action = CompatActionRing::Attach(memory.data() + place->action, kCompatStreamMagic,
                                    kCompatStreamEntries, clock);
  if (!obs.valid() || !action.valid()) {
    obs = {};
    action = {};
    return false;
  }
  AddSigns(obs.header(), kObs, host_signs, kernel_signs);
  AddSigns(action.header(), kAction, kernel_signs, host_signs);
  return true;
}

}  // namespace tetrion
