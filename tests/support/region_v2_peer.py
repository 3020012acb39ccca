#!/usr/bin/env python3
"""The streamed region of docs/formats/region_v2.md in Python: both ends, by struct and mmap alone.

    region_v2_peer.py kernel FILE [--episodes N] [--fallback] ...
    region_v2_peer.py host FILE [--weights a,b,c,d] ...

An independent reading of the format for differential tests: it shares no code with lib/stream.
Prints one JSON line about what happened. Exit status: 0 all well, 3 the other side broke the
protocol, 4 the other side is lost, 2 the region is unusable.

Ordering: every shared 32-bit word is written by one aligned store (memoryview.cast("I")) and entry
bytes are written before the index that publishes them. x86 keeps stores in order and the
interpreter does not reorder them, which is enough there; other processors would need fences that
Python does not have. Nothing here rings a futex: the other side finds entries by polling.
"""

import argparse
import json
import math
import mmap
import os
import signal
import struct
import sys
import time
import zlib

COMMAND_AT, RESPONSE_AT, DOORBELL_AT, HEAP_AT = 0x00000, 0x08000, 0x10000, 0x10100
BITMAP_AT, DATA_AT = 0x10120, 0x11000
SMALL, LARGE = 0x100000, 0x200000
OBS_AT, ACTION_AT = {SMALL: 0xFE000, LARGE: 0x100000}, {SMALL: 0xFF000, LARGE: 0x101000}
COMMAND_MAGIC, RESPONSE_MAGIC, STREAM_MAGIC = 0x51DECA9E, 0x52535030, 0x5354524D
HEAP_MAGIC, BLOB_MAGIC, DOORBELL_MAGIC = 0x48454150, 0x424C4F42, 0x444F4F52
HEAP_BLOCKS, BLOCK, BLOB_HEADER = 14080, 64, 32
PING, PRINT, ENV_RESET, ENV_STEP = 0x0001, 0x0002, 0x0100, 0x0101
OK, ERROR, BUSY = 0x8000, 0x8001, 0x8002
RESET_STREAM, RESET_METADATA = 1, 2
RESTART = 6  # of ERROR: a new host has attached
OUTSTANDING = 8  # observation blobs of the fallback
PONG = 0x504F4E47
RAW, TENSOR = 0, 1
COMMAND, RESPONSE = struct.Struct("<HHIQ"), struct.Struct("<HHIQ")
OBS, ACTION = struct.Struct("<I4ffff"), struct.Struct("<IHHII")
BLOB, SEVEN = struct.Struct("<IHBBIII12x"), struct.Struct("<7f")
MAX_STEPS = 500
DEFAULT_WEIGHTS = (0.1, 0.5, 2.0, 2.0)


class Broken(Exception):
    """The other side broke the protocol."""


class Lost(Exception):
    """The other side is gone."""


class Unusable(Exception):
    """No region that this program can work with."""


def timestamp_us():
    return time.time_ns() // 1000


class Ring:
    """A ring of a fixed number of entries; indices are masked, one slot stays free."""

    def __init__(self, region, at, entry, entries, magic, name):
        self.region, self.at, self.entry, self.entries = region, at // 4, entry, entries
        self.magic, self.name, self.slots_at = magic, name, at + 32

    def word(self, i):
        return self.region.words[self.at + i]

    def set_word(self, i, value):
        if self.region.clumsy:
            self.region.tear(self.at + i)
        self.region.words[self.at + i] = value & 0xFFFFFFFF

    def valid(self):
        return self.word(0) == self.magic and self.word(3) == self.entries

    def create(self):
        for i in (1, 2, 4, 5, 6, 7):
            self.set_word(i, 0)
        self.set_word(3, self.entries)
        self.set_word(0, self.magic)

    def index(self, i):
        value = self.word(i)
        if value >= self.entries:
            raise Broken(f"{self.name}: index {value} of {self.entries} entries")
        return value

    def push(self, *fields):
        """False when full."""
        head = self.index(1)
        following = (head + 1) % self.entries
        if following == self.index(2):
            return False
        self.entry.pack_into(self.region.map, self.slots_at + head * self.entry.size, *fields)
        self.set_word(1, following)
        return True

    def pop(self):
        """The oldest entry's fields, None when empty."""
        tail = self.index(2)
        if tail == self.index(1):
            return None
        fields = self.entry.unpack_from(self.region.map, self.slots_at + tail * self.entry.size)
        self.set_word(2, (tail + 1) % self.entries)
        return fields

    def discard(self):
        """The consumer's way to drop what is queued."""
        self.set_word(2, self.index(1))

    def rewind(self):
        """The producer's way, while the consumer keeps off."""
        self.set_word(1, self.index(2))


class Region:
    """The mapped file and what lies where in it."""

    def __init__(self, path, deadline_s, clumsy=False):
        self.clumsy, self.torn = clumsy, 0
        self.map = self._map(path, deadline_s)
        size = SMALL if len(self.map) < LARGE else LARGE
        self.words = memoryview(self.map).cast("I")
        self.command = Ring(self, COMMAND_AT, COMMAND, 1024, COMMAND_MAGIC, "command ring")
        self.response = Ring(self, RESPONSE_AT, RESPONSE, 1024, RESPONSE_MAGIC, "response ring")
        self.choose(size)

    def choose(self, size):
        self.obs = Ring(self, OBS_AT[size], OBS, 64, STREAM_MAGIC, "obs ring")
        self.action = Ring(self, ACTION_AT[size], ACTION, 64, STREAM_MAGIC, "action ring")

    @staticmethod
    def _map(path, deadline_s):
        end = time.monotonic() + deadline_s
        while True:
            try:
                with open(path, "r+b") as file:
                    if os.fstat(file.fileno()).st_size >= SMALL:
                        return mmap.mmap(file.fileno(), 0)
            except FileNotFoundError:
                pass
            if time.monotonic() > end:
                raise Unusable(f"{path} is no region of {SMALL} bytes or more")
            time.sleep(0.005)

    def tear(self, word):
        """What struct.pack_into does before it stores; now and then the processor is taken away
        at this very moment."""
        self.words[word] = 0
        self.torn += 1
        if self.torn % 64 == 0:
            time.sleep(0.001)

    def rings(self):
        return self.command, self.response, self.obs, self.action

    def valid(self):
        words = self.words
        return (self.command.valid() and self.response.valid()
                and words[DOORBELL_AT // 4] == DOORBELL_MAGIC and words[HEAP_AT // 4] == HEAP_MAGIC)

    def streams(self):
        return self.obs.valid() and self.action.valid()

    def create(self):
        """Everything that is not valid yet, each magic last."""
        for ring in self.rings():
            if not ring.valid():
                ring.create()
        words, door, heap = self.words, DOORBELL_AT // 4, HEAP_AT // 4
        if words[door] != DOORBELL_MAGIC:
            for i in range(1, 64):
                words[door + i] = 0
            words[door + 1] = 1
            words[door + 3] = words[door + 6] = 1  # both doorbells enabled
            words[door] = DOORBELL_MAGIC
        if words[heap] != HEAP_MAGIC:
            self.map[HEAP_AT + 4:HEAP_AT + 0x700] = bytes(0x700 - 4)
            for i, value in enumerate((1, HEAP_BLOCKS, HEAP_BLOCKS, 1), 1):
                words[heap + i] = value
            words[heap] = HEAP_MAGIC

    def blob(self, blob_id):
        """(block, type, payload) of a blob by its id."""
        for block in range(HEAP_BLOCKS):
            if not self.map[BITMAP_AT + block // 8] >> block % 8 & 1:
                continue
            magic, found, kind, _, size, offset, checksum = BLOB.unpack_from(
                self.map, DATA_AT + block * BLOCK)
            if magic == BLOB_MAGIC and found == blob_id and offset == block * BLOCK:
                at = DATA_AT + offset + BLOB_HEADER
                payload = bytes(self.map[at:at + size])
                if checksum != zlib.crc32(payload):
                    raise Broken(f"blob {blob_id}: its checksum is wrong")
                return block, kind, payload
        raise Broken(f"no blob {blob_id} in the heap")


class End:
    """What both ends do: waiting, heartbeats, sending on the command rings."""

    def __init__(self, region, options):
        self.region, self.options = region, options
        self.beat, self.stop, self.pulse_seen = 0, False, None
        self.pulse_at = time.monotonic()
        self.counts = dict(steps=0, episodes=0, return_sum=0.0, seq_errors=0, commands=0,
                           errors=0, streamed=0)
        signal.signal(signal.SIGTERM, self.on_signal)
        signal.signal(signal.SIGINT, self.on_signal)

    def on_signal(self, *_):
        self.stop = True

    def produced(self):
        raise NotImplementedError

    def consumed(self):
        raise NotImplementedError

    def heartbeat(self):
        if self.options.leave_heartbeats_zero:
            return
        self.beat += 1
        for ring in self.produced():
            ring.set_word(5, self.beat)
        for ring in self.consumed():
            ring.set_word(6, self.beat)

    def pulse(self):
        """Words of the other side that move while it lives."""
        words = [(ring.word(2), ring.word(6)) for ring in self.produced()]
        return words + [(ring.word(1), ring.word(5)) for ring in self.consumed()]

    def pause(self):
        """Between two looks at an empty ring."""
        self.heartbeat()
        time.sleep(0.00002)
        pulse, now = self.pulse(), time.monotonic()
        if pulse != self.pulse_seen:
            self.pulse_seen, self.pulse_at = pulse, now
        return now - self.pulse_at

    def ring_bell(self, ring, word):
        door = DOORBELL_AT // 4
        self.region.words[door + word] = ring.word(1)
        count = door + (8 if word == 2 else 9)
        self.region.words[count] = (self.region.words[count] + 1) & 0xFFFFFFFF

    def maybe_die(self):
        if self.options.die_at and self.counts["steps"] >= self.options.die_at:
            os.kill(os.getpid(), signal.SIGKILL)


class Kernel(End):
    """The master: resets, observes, acts."""

    def produced(self):
        return self.region.command, self.region.action

    def consumed(self):
        return self.region.response, self.region.obs

    def attach(self):
        region = self.region
        region.create()
        for ring in region.rings():
            ring.set_word(4, ring.word(4) + 1)  # the epoch
        region.response.discard()
        region.obs.discard()

    def call(self, command, payload, flags=0):
        """Sends a command; (status, result) of its response."""
        if not self.region.command.push(command, flags, payload, timestamp_us()):
            raise Broken("the command ring is full")
        self.ring_bell(self.region.command, 2)
        self.counts["commands"] += 1
        while True:
            answer = self.take(self.region.response)
            if answer is None:
                raise Lost("stopped")
            status, original, result, _ = answer
            if original == command:
                return status, result
            # What a host says when it comes back is about the past.
            if (status, original, result) != (ERROR, ENV_STEP, RESTART):
                raise Broken(f"response to command {original:#x} instead of {command:#x}")

    def take(self, ring):
        """The next entry; None when asked to stop."""
        idle = 0.0
        while not self.stop:
            entry = ring.pop()
            if entry is not None:
                return entry
            if idle > self.options.peer_timeout:
                raise Lost(f"{ring.name}: nothing for {self.options.peer_timeout} s")
            if ring is self.region.obs and self.region.response.word(1) != \
                    self.region.response.word(2):
                status, original, result, _ = self.region.response.pop()
                raise Broken(f"host: status {status:#x} to {original:#x}, result {result}")
            idle = self.pause()
        return None

    def weights(self, model_id):
        if not model_id:
            return DEFAULT_WEIGHTS
        _, kind, payload = self.region.blob(model_id)
        if kind != TENSOR or len(payload) != 16:
            raise Broken(f"blob {model_id} is no linear policy")
        return struct.unpack("<4f", payload)

    def act(self, observation, model_id):
        if model_id != self.model_id:
            self.model_id, self.model = model_id, self.weights(model_id)
        total = 0.0
        for weight, value in zip(self.model, observation, strict=False):
            total += weight * value
        return 1 if total > 0 else 0

    def episode(self):
        self.model_id, self.model = 0, DEFAULT_WEIGHTS
        streams = not self.options.fallback and self.region.streams()
        status, result = self.call(ENV_RESET, RESET_STREAM if streams else 0)
        if status != OK:
            raise Broken(f"ENV_RESET: status {status:#x}, result {result}")
        played = self.by_steps(result) if result else self.by_stream()
        if played:
            self.counts["episodes"] += 1

    def account(self, reward):
        self.counts["steps"] += 1
        self.counts["return_sum"] += reward
        self.maybe_die()

    def by_stream(self):
        region, expected = self.region, 0
        self.counts["streamed"] = 1
        while True:
            entry = self.take(region.obs)
            if entry is None:
                return False
            seq, *observation, reward, done, model_id = entry
            if expected == 0 and seq != 0:
                continue  # left over from before the reset
            if seq != expected:
                self.counts["seq_errors"] += 1
                raise Broken(f"observation {seq} where {expected} was due")
            if seq > 0:
                self.account(reward)
            if done > 0.5:
                return True
            action, answer = self.act(observation, int(model_id)), seq
            if self.options.skip_seq_at == self.counts["steps"] + 1:
                answer = seq + 5
            if self.options.repeat_seq_at == self.counts["steps"] + 1:
                answer = max(seq, 1) - 1
            if self.options.step_while_streaming and seq == 3:
                status, result = self.call(ENV_STEP, action)
                self.counts["step_status"], self.counts["step_result"] = status, result
            while not region.action.push(answer, action, 0, seq, 0):
                if self.pause() > self.options.peer_timeout:
                    raise Lost("action ring: full")
            expected = seq + 1

    def by_steps(self, blob_id):
        while not self.stop:
            _, _, payload = self.region.blob(blob_id)
            *observation, reward, done, model_id = SEVEN.unpack(payload)
            if done > 0.5:
                self.account(reward)
                return True
            if self.counts_from_reset:
                self.account(reward)
            self.counts_from_reset = True
            action = self.act(observation, int(model_id))
            status, blob_id = self.call(ENV_STEP, blob_id << 16 | action)
            if status != OK:
                raise Broken(f"ENV_STEP: status {status:#x}, result {blob_id}")
        return False

    def run(self):
        self.attach()
        for code in self.options.send:
            command, _, payload = code.partition(":")
            status, result = self.call(int(command, 0), int(payload or "0", 0))
            self.counts.setdefault("answers", []).append([status, result])
        while not self.stop and self.counts["episodes"] < self.options.episodes:
            self.counts_from_reset = False
            self.episode()


def philox(counter, key):
    """Philox4x32-10 (Salmon et al., SC 2011)."""
    counter, key = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [p1 >> 32 ^ counter[1] ^ key[0], p1 & 0xFFFFFFFF,
                   p0 >> 32 ^ counter[3] ^ key[1], p0 & 0xFFFFFFFF]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return counter


class CartPole:
    """CartPole-v1 in double precision; episode `token` starts where Philox(seed, token) says."""

    def __init__(self, seed, token):
        words = philox([token & 0xFFFFFFFF, token >> 32, 0, 2],
                       [seed & 0xFFFFFFFF, seed >> 32])
        self.state = [-0.05 + 0.1 * (word * (1.0 / 4294967296.0)) for word in words]
        self.steps = 0

    def step(self, action):
        """(reward, done)."""
        x, x_dot, theta, theta_dot = self.state
        force = 10.0 if action == 1 else -10.0
        cos, sin = math.cos(theta), math.sin(theta)
        temp = (force + 0.05 * (theta_dot * theta_dot) * sin) / 1.1
        theta_acc = (9.8 * sin - cos * temp) / (0.5 * (4.0 / 3.0 - 0.1 * (cos * cos) / 1.1))
        x_acc = temp - 0.05 * theta_acc * cos / 1.1
        self.state = [x + 0.02 * x_dot, x_dot + 0.02 * x_acc,
                      theta + 0.02 * theta_dot, theta_dot + 0.02 * theta_acc]
        self.steps += 1
        limit = 12 * 2 * math.pi / 360
        fell = abs(self.state[0]) > 2.4 or abs(self.state[2]) > limit
        return 1.0, fell or self.steps >= MAX_STEPS


class Host(End):
    """The peripheral: owns the environment and the heap."""

    def produced(self):
        return self.region.response, self.region.obs

    def consumed(self):
        return self.region.command, self.region.action

    def attach(self):
        end = time.monotonic() + self.options.wait
        while not self.region.valid():
            if len(self.region.map) >= LARGE and not self.region.streams():
                self.region.choose(SMALL)
            if self.stop or time.monotonic() > end:
                raise Unusable("no kernel has written the region's headers")
            time.sleep(0.002)
        self.env, self.seq, self.streaming, self.running = None, 0, False, False
        self.token, self.model_id, self.outstanding = 0, 0, []
        if self.region.words[DOORBELL_AT // 4 + 9]:  # somebody has answered here before
            self.answer(ERROR, ENV_STEP, RESTART)

    # The heap: only the host allocates and frees.

    def allocate(self, kind, payload):
        """The new blob's id; first fit. 0 when the heap is full."""
        region, heap = self.region, HEAP_AT // 4
        blocks = (BLOB_HEADER + len(payload) + BLOCK - 1) // BLOCK
        run = 0
        for block in range(HEAP_BLOCKS):
            run = 0 if region.map[BITMAP_AT + block // 8] >> block % 8 & 1 else run + 1
            if run == blocks:
                break
        else:
            return 0
        first = block - blocks + 1
        blob_id = region.words[heap + 4]
        region.words[heap + 4] = 1 if blob_id >= 0xFFFF else blob_id + 1
        at = DATA_AT + first * BLOCK
        region.map[at + BLOB_HEADER:at + BLOB_HEADER + len(payload)] = payload
        BLOB.pack_into(region.map, at, BLOB_MAGIC, blob_id, kind, 0, len(payload), first * BLOCK,
                       zlib.crc32(payload))
        for i in range(first, first + blocks):
            region.map[BITMAP_AT + i // 8] |= 1 << i % 8
        region.words[heap + 3] -= blocks
        return blob_id

    def free(self, blob_id):
        region = self.region
        first, _, payload = region.blob(blob_id)
        region.words[(DATA_AT + first * BLOCK) // 4] = 0
        blocks = (BLOB_HEADER + len(payload) + BLOCK - 1) // BLOCK
        for i in range(first, first + blocks):
            region.map[BITMAP_AT + i // 8] &= ~(1 << i % 8) & 0xFF
        region.words[HEAP_AT // 4 + 3] += blocks

    # Commands.

    def answer(self, status, command, result):
        if not self.region.response.push(status, command, result & 0xFFFFFFFF, timestamp_us()):
            raise Broken("the response ring is full")
        self.ring_bell(self.region.response, 5)
        self.counts["errors"] += status == ERROR

    def handle(self, command, flags, payload, _):
        self.counts["commands"] += 1
        if command in (PING, PRINT):
            echo = PONG if self.options.pong else payload
            self.answer(OK, command, echo if command == PING else 0)
        elif command == ENV_RESET:
            self.reset(payload)
        elif command == ENV_STEP:
            self.env_step(payload)
        else:
            self.answer(ERROR, command, command)

    def reset(self, payload):
        if payload & RESET_METADATA:
            blob = struct.pack("<IIQ", 4, 2, 0)
            self.answer(OK, ENV_RESET, self.allocate(RAW, blob))
            return
        if self.options.busy_resets > 0:
            self.options.busy_resets -= 1
            self.answer(BUSY, ENV_RESET, 0)
            return
        if self.options.refuse_resets:
            self.answer(ERROR, ENV_RESET, 4)
            return
        if self.region.streams():
            self.region.obs.rewind()
            self.region.action.discard()
        for blob_id in self.outstanding:
            self.free(blob_id)
        self.outstanding = []
        if self.options.weights and not self.model_id:
            self.model_id = self.allocate(TENSOR, struct.pack("<4f", *self.options.weights))
        self.env = CartPole(self.options.seed, self.token)
        self.token += 1
        self.seq, self.running = 0, True
        self.streaming = bool(payload & RESET_STREAM) and not self.options.fallback \
            and self.region.streams()
        if self.streaming:
            self.counts["streamed"] = 1
            self.observe(0.0, False)
            self.answer(OK, ENV_RESET, 0)
        else:
            self.answer(OK, ENV_RESET, self.observation_blob(0.0, False))

    def observation_blob(self, reward, done):
        payload = SEVEN.pack(*self.env.state, reward, float(done), float(self.model_id))
        self.outstanding.append(self.allocate(TENSOR, payload))
        return self.outstanding[-1]

    def env_step(self, payload):
        acknowledged, action = payload >> 16, payload & 0xFFFF
        if self.streaming:
            self.answer(ERROR, ENV_STEP, 1)
            return
        if acknowledged and acknowledged not in self.outstanding:
            self.answer(ERROR, ENV_STEP, 3)
            return
        if acknowledged:
            self.outstanding.remove(acknowledged)
            self.free(acknowledged)
        if not self.running or action > 1:
            self.answer(ERROR, ENV_STEP, 2 if self.running else 4)
            return
        if len(self.outstanding) >= OUTSTANDING:
            self.answer(BUSY, ENV_STEP, 0)
            return
        reward, done = self.play(action)
        self.answer(OK, ENV_STEP, self.observation_blob(reward, done))

    def play(self, action):
        reward, done = self.env.step(action)
        self.counts["steps"] += 1
        self.counts["return_sum"] += reward
        self.counts["episodes"] += done
        self.running = not done
        return reward, done

    # Streaming.

    def observe(self, reward, done):
        model_id = self.options.name_model or self.model_id
        fields = (*self.env.state, reward, float(done), float(model_id))
        while not self.region.obs.push(self.seq, *fields):
            if self.stop or self.pause() > self.options.peer_timeout:
                raise Lost("obs ring: full")

    def take_action(self, seq, action, _flags, _acknowledged, _reserved):
        if seq != self.seq or not self.running:
            self.counts["seq_errors"] += 1
            self.streaming = self.running = False
            self.answer(ERROR, ENV_STEP, 5)
            return
        reward, done = self.play(action)
        self.maybe_die()
        if self.options.freeze_at and self.counts["steps"] >= self.options.freeze_at:
            while not self.stop:
                time.sleep(0.01)
            return
        self.seq += 1
        wrong = self.counts["steps"]
        if self.options.skip_seq_at == wrong:
            self.seq += 3
        if self.options.repeat_seq_at == wrong:
            self.seq -= 1
        self.observe(reward, done)

    def run(self):
        self.attach()
        while not self.stop:
            command = self.region.command.pop()
            if command is not None:
                self.handle(*command)
                continue
            action = self.region.action.pop() if self.streaming else None
            if action is not None:
                self.take_action(*action)
            elif self.pause() > self.options.peer_timeout:
                raise Lost("nothing from the kernel")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("role", choices=["kernel", "host"])
    parser.add_argument("file")
    parser.add_argument("--episodes", type=int, default=10, help="kernel: how many to play")
    parser.add_argument("--fallback", action="store_true", help="refuse to stream")
    parser.add_argument("--leave-heartbeats-zero", action="store_true")
    parser.add_argument("--peer-timeout", type=float, default=20.0, metavar="S")
    parser.add_argument("--wait", type=float, default=20.0, metavar="S", help="for the region")
    parser.add_argument("--seed", type=int, default=1, help="host: of the episodes' starts")
    parser.add_argument("--weights", type=lambda text: [float(w) for w in text.split(",")],
                        help="host: uploads this linear policy")
    parser.add_argument("--send", type=lambda text: text.split(","), default=[],
                        help="kernel: commands before the first reset, CODE[:PAYLOAD],...")
    parser.add_argument("--pong", action="store_true",
                        help="host: answers PING with a constant, no echo")
    parser.add_argument("--clumsy-words", action="store_true",
                        help="zeroes each word of a ring header before it stores it")
    # Misbehaviour, each once, when so many steps have been made.
    parser.add_argument("--skip-seq-at", type=int, default=-1)
    parser.add_argument("--repeat-seq-at", type=int, default=-1)
    parser.add_argument("--freeze-at", type=int, default=0)
    parser.add_argument("--die-at", type=int, default=0)
    parser.add_argument("--step-while-streaming", action="store_true")
    parser.add_argument("--refuse-resets", action="store_true", help="host: every one")
    parser.add_argument("--busy-resets", type=int, default=0, help="host: so many at first")
    parser.add_argument("--name-model", type=int, default=0, help="host: in observations")
    return parser.parse_args()


def main():
    options, code, reason = arguments(), 0, ""
    try:
        region = Region(options.file, options.wait, options.clumsy_words)
    except (Unusable, OSError) as error:
        print(json.dumps({"role": options.role, "end": str(error)}))
        return 2
    end = (Kernel if options.role == "kernel" else Host)(region, options)
    try:
        end.run()
    except Broken as error:
        code, reason = 3, str(error)
    except Lost as error:
        code, reason = (0 if end.stop else 4), str(error)
    except Unusable as error:
        code, reason = 2, str(error)
    episodes = end.counts["episodes"]
    mean = end.counts.pop("return_sum") / episodes if episodes else 0.0
    print(json.dumps({"role": options.role, **end.counts, "mean_return": mean, "end": reason}))
    return code


if __name__ == "__main__":
    sys.exit(main())
