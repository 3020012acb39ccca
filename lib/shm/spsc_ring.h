#pragma once

// The single-producer single-consumer ring of fixed-size records, over a Region or plain memory.
// Records are written and read in place; one publication makes any number of them visible.
//
// Thread roles: one RingProducer and one RingConsumer exist per ring, usually in two processes;
// each is used by one thread at a time (OwnerAlive and the Approx figures by any).
//
// Invariants
//   1. tail <= head <= tail + capacity, both free-running u64 (differences survive the wrap).
//      Record i lies at index i mod capacity; all of the capacity is usable.
//   2. Only the producer stores head, only the consumer stores tail; each keeps its own value in
//      process-local memory and never reads it back. A producer or consumer killed anywhere leaves
//      the last stored cursor: an unpublished record is never seen, an unreleased one not lost.
//   3. Records in [tail, head) belong to the consumer, all others to the producer.
//   4. Everything the peer wrote is untrusted: a cursor is loaded once, checked, used. One that
//      moved back or past the capacity quarantines the ring for good, with a reason.
//
// Ordering
//   head: release in Publish pairs with acquire in Peek (the records' bytes).
//   tail: release in Release pairs with acquire in FreeRecords (reuse of the records' bytes).
//   closed: release in Close pairs with acquire in Peek, which then looks at head once more.
//   Waiting for records or space goes through a Bell, which orders by itself (bell.h).
//
// Waking the producer. A locked instruction in every Release would cost more than the record's way
// itself, so only a Release that moves tail across a multiple of a quarter of the capacity rings
// the space bell for certain; the others look at it with a plain load. That suffices: a producer
// sleeps only if, after arming the bell, it saw tail = head - capacity. The consumer gives these
// `capacity` records back without help from the producer, and on the way crosses a quarter. That
// Release's read-modify-write either finds the armed bit and wakes, or precedes the arming, but
// then the producer's re-check would have seen a later tail.
//
// The peer's cursor is cached process-locally and reloaded only when the cached one says full or
// empty: otherwise its line would travel between the cores with every record.
//
// Small records come fastest in runs: ClaimMany(n), write, Complete, Publish. A store waits in the
// core's store buffer, behind the record's stores, until the consumer's core has given the record's
// line up; the bookkeeping of a claim for every record would fill that buffer and leave fewer lines
// on their way at the same time (measured: half the rate of runs of 32 records of 64 bytes).

#include "lib/shm/ring_consumer.h"
#include "lib/shm/ring_producer.h"
