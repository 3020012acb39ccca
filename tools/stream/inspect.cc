#include "tools/stream/inspect.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "lib/core/check.h"
#include "lib/region_v2/compat_heap.h"
#include "lib/region_v2/compat_region.h"
#include "tools/stream/text_format.h"

namespace tetrion {
namespace {

template <typename T>
T At(std::span<const std::byte> memory, std::size_t offset) {
  T value;
  std::memcpy(&value, memory.data() + offset, sizeof value);
  return value;
}

std::string Line(const CompatCommand& entry) {
  return Format("cmd 0x%04x flags %u payload 0x%x time %llu us", entry.cmd, entry.flags,
                entry.payload, static_cast<unsigned long long>(entry.timestamp_us));
}

std::string Line(const CompatResponse& entry) {
  return Format("status 0x%04x to 0x%04x result %u time %llu us", entry.status, entry.orig_cmd,
                entry.result, static_cast<unsigned long long>(entry.timestamp_us));
}

std::string Line(const CompatObs& entry) {
  return Format("seq %u obs %.5g %.5g %.5g %.5g reward %.5g done %.5g model %.5g", entry.seq,
                static_cast<double>(entry.obs[0]), static_cast<double>(entry.obs[1]),
                static_cast<double>(entry.obs[2]), static_cast<double>(entry.obs[3]),
                static_cast<double>(entry.reward), static_cast<double>(entry.done),
                static_cast<double>(entry.model_id));
}

std::string Line(const CompatAction& entry) {
  return Format("seq %u action %u flags %u ack_seq %u reserved %u", entry.seq, entry.action,
                entry.flags, entry.ack_seq, entry.reserved);
}

// Writes reports of one region.
class Inspector {
 public:
  Inspector(std::span<const std::byte> memory, int last_entries)
      : memory_(memory), last_entries_(static_cast<std::uint32_t>(last_entries)) {}

  RegionReport Run() {
    report_.problems = CompatProblems(memory_);
    Ring<CompatCommand>("command ring", kCompatCommandRing, kCompatCommandEntries);
    Ring<CompatResponse>("response ring", kCompatResponseRing, kCompatCommandEntries);
    if (const auto place = FindCompatStream(memory_)) {
      Ring<CompatObs>("obs ring", place->obs, kCompatStreamEntries);
      Ring<CompatAction>("action ring", place->action, kCompatStreamEntries);
    } else if (report_.problems.empty()) {
      report_.text += "no stream rings: episodes go by command and blob\n";
    }
    Doorbell();
    Heap();
    report_.text += report_.problems.empty() ? "sound\n" : "";
    return std::move(report_);
  }

 private:
  template <typename Entry>
  void Ring(const char* name, std::size_t at, std::uint32_t entries) {
    const auto header = At<CompatRingHeader>(memory_, at);
    const std::uint32_t queued = (header.head - header.tail) & (entries - 1);
    report_.text += Format(
        "%-13s at 0x%06zx magic 0x%08x size %u head %u tail %u queued %u epoch %u "
        "beats %u %u\n",
        name, at, header.magic, header.size, header.head, header.tail, queued, header.epoch,
        header.producer_beat, header.consumer_beat);
    if (header.head >= entries) return;  // named among the problems
    for (std::uint32_t i = std::min(last_entries_, entries - 1); i > 0; --i) {
      const std::uint32_t slot = (header.head - i) & (entries - 1);
      const auto entry = At<Entry>(memory_, at + sizeof(CompatRingHeader) + slot * sizeof(Entry));
      static constexpr Entry kNever = {};
      if (std::memcmp(&entry, &kNever, sizeof entry) == 0) continue;
      const bool waits = ((slot - header.tail) & (entries - 1)) < queued;
      report_.text += Format("  [%u]%s ", slot, waits ? " queued" : "") + Line(entry) + "\n";
    }
  }

  void Doorbell() {
    const auto bell = At<CompatDoorbellBlock>(memory_, kCompatDoorbell);
    report_.text += Format("doorbells     at 0x%06zx magic 0x%08x version %u\n", kCompatDoorbell,
                           bell.magic, bell.version);
    report_.text += Format("  commands: doorbell %u flags %u irqs %u writes %u\n",
                           bell.cmd_doorbell, bell.cmd_flags, bell.cmd_irq_count, bell.cmd_writes);
    report_.text += Format("  responses: doorbell %u flags %u irqs %u writes %u\n",
                           bell.rsp_doorbell, bell.rsp_flags, bell.rsp_irq_count, bell.rsp_writes);
    report_.text += Format("  obs doorbell %u, kernel %s; action doorbell %u, host %s\n",
                           bell.obs_doorbell, bell.kernel_asleep != 0 ? "asleep" : "awake",
                           bell.action_doorbell, bell.host_asleep != 0 ? "asleep" : "awake");
  }

  void Heap() {
    const auto heap = At<CompatHeapControl>(memory_, kCompatHeapControl);
    std::uint32_t used = 0;
    for (const std::uint8_t byte : heap.bitmap) {
      used += static_cast<std::uint32_t>(std::popcount(byte));
    }
    report_.text += Format(
        "heap          at 0x%06zx magic 0x%08x version %u blocks %u free %u used %u "
        "next blob %u\n",
        kCompatHeapControl, heap.magic, heap.version, heap.total_blocks, heap.free_blocks, used,
        heap.next_blob_id);
    if (heap.magic != kCompatHeapMagic) return;
    // A program that manages more blocks than we look at may have used any of the rest.
    const std::uint32_t least = kCompatHeapBlocks - used;
    const std::uint32_t most = std::max(heap.total_blocks, kCompatHeapBlocks) - used;
    if (heap.free_blocks < least || heap.free_blocks > most) {
      Problem(Format("heap control at 0x%zx: free_blocks is %u, the bitmap says %u",
                     kCompatHeapControl, heap.free_blocks, least));
    }
    CompatHeapWalk walk(memory_);
    while (const std::optional<CompatHeapEntry> entry = walk.Next()) Blob(walk, *entry);
  }

  void Blob(const CompatHeapWalk& walk, const CompatHeapEntry& entry) {
    const std::size_t at = kCompatHeapData + std::size_t{entry.block} * kCompatBlockBytes;
    if (!entry.is_blob) {
      Problem(
          Format("heap block %u at 0x%zx is in use, but no blob starts there", entry.block, at));
      return;
    }
    const CompatBlobHeader& blob = entry.header;
    report_.text += Format("  blob %u type %u at 0x%zx: %u bytes in %u blocks", blob.id, blob.type,
                           at, blob.size, entry.blocks);
    for (std::uint32_t i = 0; blob.type == kCompatBlobTensor && i < std::min(blob.size / 4, 8U);
         ++i) {
      const auto value = At<float>(memory_, at + sizeof blob + i * sizeof(float));
      report_.text += Format(" %.5g", static_cast<double>(value));
    }
    report_.text += "\n";
    for (std::uint32_t i = entry.block; i < entry.block + entry.blocks; ++i) {
      if (!walk.Used(i)) {
        Problem(Format("blob %u at 0x%zx: its block %u is marked free", blob.id, at, i));
      }
    }
  }

  void Problem(std::string problem) {
    // A heap of garbage has thousands of them; the first ones tell.
    constexpr std::size_t kEnough = 20;
    if (report_.problems.size() < kEnough) report_.problems.push_back(std::move(problem));
  }

  const std::span<const std::byte> memory_;
  const std::uint32_t last_entries_;
  RegionReport report_;
};

}  // namespace

RegionReport InspectRegion(std::span<const std::byte> memory, int last_entries) {
  TETRION_CHECK(memory.size() >= kCompatRegionBytes, "no region is smaller than 1 MiB");
  return Inspector(memory, last_entries).Run();
}

}  // namespace tetrion
