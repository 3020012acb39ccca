#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "lib/core/philox.h"
#include "lib/frame/row_slots.h"
#include "lib/frame/specs.h"
#include "lib/policy/policy.h"
#include "tests/lib/cuda/device_fixture.h"

namespace tetrion {

// The columns of one row that a policy reads, in host memory, and what it wrote.
struct HostRow {
  std::vector<std::byte> record;    // [M, record_bytes]
  std::vector<std::uint64_t> mask;  // [M]
  std::vector<std::uint8_t> flags;  // [M]
  std::vector<std::uint64_t> token_ids;
  std::vector<std::uint32_t> steps;
  std::vector<std::int32_t> action;
  std::vector<float> log_prob;
  RowHeader header = {};

  // What a policy of the CPU sees of it.
  PolicyInput Input(const EnvSpec& env) const {
    return {.n = static_cast<int>(flags.size()),
            .records = record.data(),
            .masks = env.action.has_mask ? mask.data() : nullptr,
            .flags = flags.data(),
            .token_ids = token_ids.data(),
            .steps = steps.data()};
  }
};

// Rows in device memory, with the number of the row to decide, tokens and steps.
struct RowsOnDevice {
  RowsOnDevice(const cuda::Device& device, const EnvSpec& env, std::uint32_t lanes,
               std::uint64_t capacity)
      : header(device, capacity * sizeof(RowHeader), "headers"),
        record(device, capacity * lanes * env.obs.record_bytes, "records"),
        action(device, capacity * lanes * 4, "actions"),
        log_prob(device, capacity * lanes * 4, "log-probabilities"),
        mask(device, capacity * lanes * 8, "masks"),
        flags(device, capacity * lanes, "flags"),
        token_ids(device, lanes * std::size_t{8}, "tokens"),
        steps(device, lanes * std::size_t{4}, "steps"),
        row(device, 8, "number of a row") {
    slots.header = header.data<RowHeader>();
    slots.record = record.data<std::byte>();
    slots.action = action.data<std::int32_t>();
    slots.log_prob = log_prob.data<float>();
    slots.mask = env.action.has_mask ? mask.data<std::uint64_t>() : nullptr;
    slots.flags = flags.data<std::uint8_t>();
    slots.capacity_rows = capacity;
    slots.lanes = lanes;
    slots.record_bytes = env.obs.record_bytes;
  }

  cuda::DeviceBuffer header, record, action, log_prob, mask, flags, token_ids, steps, row;
  RowSlots slots;
};

class DeviceRowsFixture : public cuda::DeviceFixture {
 protected:
  // Puts `number` and what a policy reads of the row into device memory.
  void Put(const HostRow& row, std::uint64_t number, const RowsOnDevice& rows) {
    const RowView view = rows.slots.At(number);
    Copy(rows.row.data<std::uint64_t>(), &number, 1);
    Copy(view.record, row.record.data(), row.record.size());
    if (view.mask != nullptr) Copy(view.mask, row.mask.data(), row.mask.size());
    Copy(view.flags, row.flags.data(), row.flags.size());
    Copy(rows.token_ids.data<std::uint64_t>(), row.token_ids.data(), row.token_ids.size());
    Copy(rows.steps.data<std::uint32_t>(), row.steps.data(), row.steps.size());
  }

  // Reads what a policy wrote; waits for the stream.
  void Take(HostRow& row, std::uint64_t number, const RowsOnDevice& rows) {
    const RowView view = rows.slots.At(number);
    row.action.resize(rows.slots.lanes);
    row.log_prob.resize(rows.slots.lanes);
    Fetch(row.action.data(), view.action, row.action.size());
    Fetch(row.log_prob.data(), view.log_prob, row.log_prob.size());
    Fetch(&row.header, view.header, 1);
    stream->Synchronize();
  }

 private:
  template <typename T>
  void Copy(T* to, const T* from, std::size_t count) {
    cuda::CopyToDevice(to, from, count * sizeof(T), cuda::CopyPurpose::kSetUp, *stream);
  }
  template <typename T>
  void Fetch(T* to, const T* from, std::size_t count) {
    cuda::CopyToHost(to, from, count * sizeof(T), cuda::CopyPurpose::kSetUp, *stream);
  }
};

// A row of noise: records are floats in [-1, 1), each mask has a bit at least, every fifth lane is
// last.
inline HostRow NoisyRow(const EnvSpec& env, std::uint32_t lanes, std::uint64_t seed) {
  HostRow row;
  row.record.resize(std::size_t{lanes} * env.obs.record_bytes);
  for (std::size_t i = 0; i < row.record.size() / sizeof(float); ++i) {
    const PhiloxBlock draw = PhiloxDraw(seed, i, 0, PhiloxPurpose::kSampler);
    const auto value = static_cast<float>(UnitDraw(draw.word[0]) * 2 - 1);
    std::memcpy(row.record.data() + i * sizeof(float), &value, sizeof value);
  }
  for (std::uint32_t lane = 0; lane < lanes; ++lane) {
    const PhiloxBlock draw = PhiloxDraw(seed, lane, 1, PhiloxPurpose::kSampler);
    const std::uint64_t bits = std::uint64_t{draw.word[0]} << 32 | draw.word[1];
    row.mask.push_back(bits | std::uint64_t{1} << (lane % 8));
    row.flags.push_back(lane % 5 == 4 ? kIsLast | kTerminated : lane % 5 == 0 ? kIsFirst : 0);
    row.token_ids.push_back((std::uint64_t{draw.word[2]} << 8) + lane);
    row.steps.push_back(draw.word[3] % 1000);
  }
  return row;
}

}  // namespace tetrion
