#include "tools/stream/region_doc.h"

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "lib/region_v2/compat_blocks.h"
#include "lib/region_v2/compat_index.h"
#include "lib/region_v2/compat_layout.h"
#include "tools/stream/text_format.h"

namespace tetrion {
namespace {

template <typename T>
const char* TypeName() {
  using Element = std::remove_all_extents_t<T>;
  if constexpr (std::is_same_v<Element, float>) return "f32";
  if constexpr (sizeof(Element) == 1) return "u8";
  if constexpr (sizeof(Element) == 2) return "u16";
  if constexpr (sizeof(Element) == 4) return "u32";
  return "u64";
}

struct Field {
  std::size_t offset, bytes, count;
  const char* type;
  const char* name;
  const char* meaning;
};

template <typename T>
constexpr std::size_t CountOf() {
  return sizeof(T) / sizeof(std::remove_all_extents_t<T>);
}

// One row of a table, its offset and type taken from the struct.
#define TETRION_FIELD(Struct, member, meaning)                                             \
  Field {                                                                                  \
    offsetof(Struct, member), sizeof(Struct::member), CountOf<decltype(Struct::member)>(), \
        TypeName<decltype(Struct::member)>(), #member, meaning                             \
  }

std::string Table(const std::string& title, std::size_t bytes, const std::vector<Field>& fields) {
  std::string text = Format("\n### %s: %zu bytes\n\n", title.c_str(), bytes) +
                     "| offset | bytes | type | field | meaning |\n|---|---|---|---|---|\n";
  for (const Field& field : fields) {
    const std::string type =
        field.count == 1 ? field.type : Format("%s[%zu]", field.type, field.count);
    text += Format("| %zu | %zu | %s | `%s` | %s |\n", field.offset, field.bytes, type.c_str(),
                   field.name, field.meaning);
  }
  return text;
}

std::string Place(std::size_t at, std::size_t bytes, const std::string& what) {
  return Format("| 0x%06zX | 0x%05zX | %s |\n", at, bytes, what.c_str());
}

std::string Map() {
  const auto ring = [](std::uint32_t entries, std::size_t entry_bytes, const char* direction) {
    return Format("32 B header + %u x %zu B, %s", entries, entry_bytes, direction);
  };
  std::string text = "## The region\n\n| at | bytes | content |\n|---|---|---|\n";
  text += Place(
      kCompatCommandRing, kCompatResponseRing - kCompatCommandRing,
      "command ring: " + ring(kCompatCommandEntries, sizeof(CompatCommand), "kernel to host"));
  text += Place(
      kCompatResponseRing, kCompatDoorbell - kCompatResponseRing,
      "response ring: " + ring(kCompatCommandEntries, sizeof(CompatResponse), "host to kernel"));
  text += Place(kCompatDoorbell, sizeof(CompatDoorbellBlock), "doorbell block");
  text += Place(kCompatHeapControl, sizeof(CompatHeapControl),
                Format("heap control, with the bitmap of %u blocks", kCompatHeapBlocks));
  text += Place(kCompatMeshTable, kCompatHeapData - kCompatMeshTable,
                "mesh table and reserved: never touched");
  text += Place(kCompatHeapData, kCompatObsRing - kCompatHeapData,
                Format("heap data: blocks of %u B, the first %u are used", kCompatBlockBytes,
                       kCompatHeapBlocks));
  const std::string obs = ring(kCompatStreamEntries, sizeof(CompatObs), "host to kernel");
  const std::string action = ring(kCompatStreamEntries, sizeof(CompatAction), "kernel to host");
  text += Place(kCompatObsRing, kCompatActionRing - kCompatObsRing, "OBS ring: " + obs);
  text +=
      Place(kCompatActionRing, kCompatRegionBytes - kCompatActionRing, "ACTION ring: " + action);
  text += Format(
      "\nThe bitmap of a full heap would run into the mesh table; that is why blocks from %u on\n"
      "stay unused. Another program's heap may have more, up to %u in front of the OBS ring and\n"
      "%u without it: tetrion-stream uses and looks at the first %u all the same, and makes no\n"
      "stream rings where the heap has taken their place. A region of 0x%zX bytes may leave the\n"
      "heap its last 8 KiB and hold the OBS ring at 0x%zX and the ACTION ring at 0x%zX; an\n"
      "attaching end finds them by their magics.\n",
      kCompatHeapBlocks, kCompatMostHeapBlocks, kCompatMostHeapBlocksWithoutRings,
      kCompatHeapBlocks, kCompatLargeRegionBytes, kCompatLargeObsRing, kCompatLargeActionRing);
  return text;
}

std::string Codes() {
  std::string text = "\n## Codes\n\n| magic | of |\n|---|---|\n";
  const struct {
    std::uint32_t value;
    const char* of;
  } magics[] = {{kCompatCommandMagic, "command ring"},
                {kCompatResponseMagic, "response ring"},
                {kCompatStreamMagic, "OBS ring and ACTION ring"},
                {kCompatDoorbellMagic, "doorbell block"},
                {kCompatHeapMagic, "heap control"},
                {kCompatBlobMagic, "a blob"}};
  for (const auto& magic : magics) text += Format("| 0x%08X | %s |\n", magic.value, magic.of);
  const struct {
    std::uint32_t value;
    const char* name;
    const char* meaning;
  } codes[] = {
      {kCompatPing, "PING",
       "answered OK; the result may be anything, tetrion-stream's is the payload"},
      {kCompatPrint, "PRINT",
       "the payload goes to the host's log (tetrion-stream: a line a second); OK, result 0"},
      {kCompatEnvReset, "ENV_RESET",
       "a new episode; payload bit 0: stream it, bit 1: only the id of the metadata blob"},
      {kCompatEnvStep, "ENV_STEP",
       "one step without the stream; payload (acknowledged blob id << 16) \\| action"},
      {kCompatOk, "OK", "done"},
      {kCompatError, "ERROR", "refused; result as below, or the command itself when unknown"},
      {kCompatBusy, "BUSY", "too many unacknowledged blobs, or the heap is full: ask again"},
  };
  text += "\n| code | name | meaning |\n|---|---|---|\n";
  for (const auto& code : codes) {
    text += Format("| 0x%04X | %s | %s |\n", code.value, code.name, code.meaning);
  }
  const struct {
    std::uint32_t value;
    const char* meaning;
  } errors[] = {{kCompatErrorStreaming, "ENV_STEP while streaming"},
                {kCompatErrorAction, "no such action"},
                {kCompatErrorAck, "the acknowledged blob is not outstanding"},
                {kCompatErrorNoEpisode, "no episode is running: send ENV_RESET"},
                {kCompatErrorSeq, "an ACTION skipped or repeated a seq, or answered a done OBS"},
                {kCompatErrorRestart, "a new host has attached: send ENV_RESET"}};
  text += "\n| result of ERROR | meaning |\n|---|---|\n";
  for (const auto& error : errors) text += Format("| %u | %s |\n", error.value, error.meaning);
  return text;
}

std::string RingTables() {
  std::string text = Table(
      "Ring header", sizeof(CompatRingHeader),
      {TETRION_FIELD(CompatRingHeader, magic, "written last when the ring is made"),
       TETRION_FIELD(CompatRingHeader, head, "next slot to fill; the producer writes it"),
       TETRION_FIELD(CompatRingHeader, tail, "oldest full slot; the consumer writes it"),
       TETRION_FIELD(CompatRingHeader, size, "entries, a power of two; checked once, at attach"),
       TETRION_FIELD(CompatRingHeader, epoch, "1 when made, +1 with every kernel that adopts it"),
       TETRION_FIELD(CompatRingHeader, producer_beat, "heartbeat counter; may stay 0"),
       TETRION_FIELD(CompatRingHeader, consumer_beat, "heartbeat counter; may stay 0"),
       TETRION_FIELD(CompatRingHeader, reserved, "0")});
  text += Format(
      "\nIndices are masked, 0 to size - 1. A ring is empty when head = tail and full when\n"
      "(head + 1) mod size = tail: %u of %u stream slots and %u of %u command slots are usable.\n\n"
      "Write an index by one aligned 32-bit store, after the entry's bytes. A writer that zeroes "
      "the\n"
      "word first or fills it byte by byte (Python's struct.pack_into does both; a memoryview cast "
      "to\n"
      "\"I\" does not) shows the other end an index that never was. tetrion-stream bears that: of "
      "an\n"
      "index that goes down, other than from the last slot to 0, it reads a second time, and "
      "believes\n"
      "a 0 only once it has stood for %lld ms; an entry with a wrong seq it looks at again by a "
      "fresh\n"
      "index before it calls it an error. Other programs may take entries of the lap before for "
      "new.\n",
      kCompatStreamEntries - 1, kCompatStreamEntries, kCompatCommandEntries - 1,
      kCompatCommandEntries, static_cast<long long>(CompatPeerIndex::kDoubtNs / kNanosPerMilli));
  text += Table(
      "Command", sizeof(CompatCommand),
      {TETRION_FIELD(CompatCommand, cmd, "see the codes"), TETRION_FIELD(CompatCommand, flags, "0"),
       TETRION_FIELD(CompatCommand, payload, "by command"),
       TETRION_FIELD(CompatCommand, timestamp_us, "the sender's clock")});
  text += Table("Response", sizeof(CompatResponse),
                {TETRION_FIELD(CompatResponse, status, "see the codes"),
                 TETRION_FIELD(CompatResponse, orig_cmd, "the command answered"),
                 TETRION_FIELD(CompatResponse, result, "by command"),
                 TETRION_FIELD(CompatResponse, timestamp_us, "the sender's clock")});
  text += Table("OBS entry", sizeof(CompatObs),
                {TETRION_FIELD(CompatObs, seq, "0 at every reset, +1 with every step"),
                 TETRION_FIELD(CompatObs, obs, "x, x_dot, theta, theta_dot"),
                 TETRION_FIELD(CompatObs, reward, "of the step that led here; 0 at seq 0"),
                 TETRION_FIELD(CompatObs, done, "1 when the episode ended, else 0; test > 0.5"),
                 TETRION_FIELD(CompatObs, model_id, "blob id of the weights; 0: none")});
  text += Table("ACTION entry", sizeof(CompatAction),
                {TETRION_FIELD(CompatAction, seq, "of the OBS it answers"),
                 TETRION_FIELD(CompatAction, action, "0 pushes left, 1 right"),
                 TETRION_FIELD(CompatAction, flags, "0"),
                 TETRION_FIELD(CompatAction, ack_seq, "last OBS consumed"),
                 TETRION_FIELD(CompatAction, reserved, "0")});
  return text;
}

std::string BlockTables() {
  std::string text = Table(
      "Doorbell block", sizeof(CompatDoorbellBlock),
      {TETRION_FIELD(CompatDoorbellBlock, magic, "written last"),
       TETRION_FIELD(CompatDoorbellBlock, version, "1"),
       TETRION_FIELD(CompatDoorbellBlock, cmd_doorbell, "head of the command ring after a send"),
       TETRION_FIELD(CompatDoorbellBlock, cmd_flags, "bit 0 enabled, bit 1 pending"),
       TETRION_FIELD(CompatDoorbellBlock, cmd_irq_count, "interrupts, where there are any"),
       TETRION_FIELD(CompatDoorbellBlock, rsp_doorbell, "head of the response ring after a send"),
       TETRION_FIELD(CompatDoorbellBlock, rsp_flags, "bit 0 enabled, bit 1 pending"),
       TETRION_FIELD(CompatDoorbellBlock, rsp_irq_count, "interrupts, where there are any"),
       TETRION_FIELD(CompatDoorbellBlock, cmd_writes, "commands sent"),
       TETRION_FIELD(CompatDoorbellBlock, rsp_writes, "responses sent"),
       TETRION_FIELD(CompatDoorbellBlock, obs_doorbell, "futex word the kernel sleeps on"),
       TETRION_FIELD(CompatDoorbellBlock, action_doorbell, "futex word the host sleeps on"),
       TETRION_FIELD(CompatDoorbellBlock, kernel_asleep, "1 while the kernel sleeps"),
       TETRION_FIELD(CompatDoorbellBlock, host_asleep, "1 while the host sleeps"),
       TETRION_FIELD(CompatDoorbellBlock, reserved, "0")});
  text += Table(
      "Heap control", sizeof(CompatHeapControl),
      {TETRION_FIELD(CompatHeapControl, magic, "written last"),
       TETRION_FIELD(CompatHeapControl, version, "1"),
       TETRION_FIELD(CompatHeapControl, total_blocks, "blocks under management, at least 14080"),
       TETRION_FIELD(CompatHeapControl, free_blocks, "of them free, as far as the host uses them"),
       TETRION_FIELD(CompatHeapControl, next_blob_id, "from 1"),
       TETRION_FIELD(CompatHeapControl, reserved, "0"),
       TETRION_FIELD(CompatHeapControl, bitmap, "bit i % 8 of byte i / 8: block i used")});
  text += Table("Blob header", sizeof(CompatBlobHeader),
                {TETRION_FIELD(CompatBlobHeader, magic, "0 once freed"),
                 TETRION_FIELD(CompatBlobHeader, id, "never 0"),
                 TETRION_FIELD(CompatBlobHeader, type, "0 raw, 1 tensor"),
                 TETRION_FIELD(CompatBlobHeader, flags, "0"),
                 TETRION_FIELD(CompatBlobHeader, size, "bytes of the payload, which follows"),
                 TETRION_FIELD(CompatBlobHeader, offset, "of the blob's block in the heap data"),
                 TETRION_FIELD(CompatBlobHeader, checksum, "CRC-32 of the payload"),
                 TETRION_FIELD(CompatBlobHeader, reserved, "0")});
  text += Table("Payload of the metadata blob (raw)", sizeof(CompatMetadata),
                {TETRION_FIELD(CompatMetadata, obs_dim, "floats of an observation"),
                 TETRION_FIELD(CompatMetadata, action_count, "actions are 0 to this - 1"),
                 TETRION_FIELD(CompatMetadata, spec_hash, "changes with the environment")});
  text += Table("Payload of an observation blob (tensor)", sizeof(CompatObsBlob),
                {TETRION_FIELD(CompatObsBlob, obs, "x, x_dot, theta, theta_dot"),
                 TETRION_FIELD(CompatObsBlob, reward, "as in the OBS entry"),
                 TETRION_FIELD(CompatObsBlob, done, "as in the OBS entry"),
                 TETRION_FIELD(CompatObsBlob, model_id, "as in the OBS entry")});
  text +=
      "\nThe payload of a model is a tensor of 4 f32: push right where weights . observation > 0.\n"
      "At most " +
      std::to_string(kCompatMaxOutstanding) + " observation blobs may be unacknowledged.\n";
  return text;
}

// Sixteen bytes a line, as xxd shows them.
std::string Hex(std::size_t at, const void* data, std::size_t bytes) {
  std::string text;
  const auto* from = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (i % 16 == 0) text += Format("%s%06zx:", i == 0 ? "" : "\n", at + i);
    text += Format(" %02x", static_cast<unsigned>(from[i]));
  }
  return text + "\n";
}

template <typename T>
std::string Shown(const char* what, std::size_t at, const T& value) {
  return Format("\n%s:\n\n```\n", what) + Hex(at, &value, sizeof value) + "```\n";
}

// An episode's first step as it lies in a fresh region, made with the structs themselves.
std::string Example() {
  constexpr std::size_t kFirst = sizeof(CompatRingHeader);
  std::string text =
      "\n## A worked example\n\nThe first step of the first episode in a region of "
      "1 MiB, little-endian. Timestamps are\nmicroseconds; here they are 1, 2.\n";
  text += Shown("1. The kernel has made the command ring and asked for a streamed episode",
                kCompatCommandRing,
                CompatRingHeader{.magic = kCompatCommandMagic,
                                 .head = 1,
                                 .tail = 0,
                                 .size = kCompatCommandEntries,
                                 .epoch = 1,
                                 .producer_beat = 0,
                                 .consumer_beat = 0,
                                 .reserved = 0});
  text += Shown(
      "The command, slot 0", kCompatCommandRing + kFirst,
      CompatCommand{
          .cmd = kCompatEnvReset, .flags = 0, .payload = kCompatResetStream, .timestamp_us = 1});
  text +=
      Shown("2. The host's first observation, slot 0 of the OBS ring (0.01, -0.02, 0.03, -0.04)",
            kCompatObsRing + kFirst,
            CompatObs{.seq = 0,
                      .obs = {0.01F, -0.02F, 0.03F, -0.04F},
                      .reward = 0.0F,
                      .done = 0.0F,
                      .model_id = 1.0F});
  text +=
      Shown("3. Its answer to ENV_RESET, slot 0 of the response ring", kCompatResponseRing + kFirst,
            CompatResponse{
                .status = kCompatOk, .orig_cmd = kCompatEnvReset, .result = 0, .timestamp_us = 2});
  text += Shown("4. The kernel pushes right, slot 0 of the ACTION ring", kCompatActionRing + kFirst,
                CompatAction{.seq = 0, .action = 1, .flags = 0, .ack_seq = 0, .reserved = 0});
  text += Shown("5. The host answers with seq 1, slot 1 of the OBS ring",
                kCompatObsRing + kFirst + sizeof(CompatObs),
                CompatObs{.seq = 1,
                          .obs = {0.0096F, 0.1747F, 0.0292F, -0.3231F},
                          .reward = 1.0F,
                          .done = 0.0F,
                          .model_id = 1.0F});
  text += Shown("The OBS ring's header when both observations have been taken", kCompatObsRing,
                CompatRingHeader{.magic = kCompatStreamMagic,
                                 .head = 2,
                                 .tail = 2,
                                 .size = kCompatStreamEntries,
                                 .epoch = 1,
                                 .producer_beat = 0,
                                 .consumer_beat = 0,
                                 .reserved = 0});
  return text;
}

constexpr char kHead[] = R"(# The streamed region, version 2

Generated by `tetrion-stream layout` from lib/region_v2/compat_layout.h and compat_blocks.h; a test
compares them. Two programs share one file or device: the *kernel* holds the policy, starts
episodes and chooses actions; the *host* owns the environment. Everything is little-endian and
naturally aligned; every ring has one producer and one consumer and no lock.

```
   kernel                                                   host
     |--- command ring    ENV_RESET, PING, ENV_STEP ... --->|
     |<-- response ring   OK, ERROR, BUSY ------------------|
     |<-- OBS ring        seq, observation, reward, done ---|  every step of a streamed episode
     |--- ACTION ring     seq, action --------------------->|
     |    heap            weights, metadata, observations   |  the host allocates, the kernel reads
     |    doorbell block  who sleeps, who has sent          |
```

)";

constexpr char kFlow[] = R"(
## An episode

1. The kernel makes what is not there yet (each magic last) or adopts what is: it adds 1 to the
   epochs and drops what is queued for it, but never sets an index back. Either end may come first;
   the host waits for the magics.
2. The kernel sends ENV_RESET, payload bit 0 set if both stream rings are valid. The host streams
   if the bit is set and it finds them valid too.
3. The host drops what is queued in both stream rings, resets, pushes OBS seq 0 and answers OK with
   result 0. Not streaming, it answers with the id of a blob of 7 f32 (observation, reward, done,
   model id) instead.
4. The kernel answers every OBS with an ACTION of the same seq, the host answers that with the next
   OBS. A seq that is skipped or repeated closes the stream with ERROR.
5. After an OBS with done > 0.5 comes no action: the kernel sends the next ENV_RESET. Termination
   and truncation look alike.
6. Not streaming, ENV_STEP takes the place of ACTION; each acknowledges the blob before.

A host answers each command before it takes the next. A kernel that adopts a region relies on
that: it sends PING, and when the command ring's tail has passed it, some PING is answered and the
response ring is empty, no answer to an earlier kernel's command is to come. Of a response, status
and original command always count, the result only where this page gives it a meaning. Readers look
at no timestamps, no flags of entries, no `ack_seq` and no reserved words.

An end that finds nothing to do looks again for a while. Then it stores 1 in its `asleep` word,
looks once more and sleeps on its futex word, 100 ms at most: an end that never rings still works.
An end that publishes adds 1 to the other's futex word when the ring was empty or the other sleeps,
and wakes it if it does. Before it sleeps itself it wakes the other in any case, so that an end
which sleeps on its word without saying so hears of an entry by then at the latest. It gives the
other end up when neither its heartbeat nor its indices move for the time that `--peer-timeout`
sets.

The region keeps its size as long as either end has it mapped: nobody may truncate it, and a file
is removed, not emptied. A program that touches what has been cut off gets SIGBUS;
`tetrion-stream` then says so and ends with 78, wherever it was.

## Tables
)";

}  // namespace

std::string RegionDoc() {
  return kHead + Map() + Codes() + kFlow + RingTables() + BlockTables() + Example();
}

}  // namespace tetrion
