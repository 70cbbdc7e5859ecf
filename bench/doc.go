// SPDX-License-Identifier: Apache-2.0

// Package bench measures what the framework itself costs: agents that answer at
// once, in loops, alone and through a runner, beside a peer and beside floors
// that do the same work by hand. It is a module of its own, so that importers
// of the library do not inherit the peer. It needs Linux or another Unix.
//
//	go test -run '^$' -bench . -benchmem            # all of it: about five minutes
//	go test -run '^$' -bench 'LoopRunner/impl=ours' # one of them
//	go test -run TestGates -v -gates                # the targets, and whether they are met
//
// After "go mod download" it works without a network.
//
// # What is run
//
// Three agents say one event each, iteration after iteration: a text of 40
// bytes and a state delta of one key.
//
//	BenchmarkLoopDirect  the loop agent alone; events are dropped
//	BenchmarkLoopRunner  through the runner and the in-memory session, which keeps them
//	BenchmarkConcurrent  s runs of k iterations at once, through one runner, all kept
//	BenchmarkLLMLoop     a writer, then critic and refiner for k iterations, with a
//	                     model that answers at once; here an event is a turn
//
// The dimensions are parts of the names, as benchstat reads them:
//
//	impl=ours        this project
//	impl=eino        Eino's loop agent; its runner keeps events for the run only.
//	                 Its cost an event grows with the iterations, so it stops at
//	                 1000, and in any case at 5 GiB of memory
//	impl=floor       the least Go can do it in: a bare event through three
//	                 iter.Seq2, and for a runner a locked log and a state map
//	impl=floorid     the same with a UUID and a time on every event
//	impl=floorevent  the same as floor with a [session.Event] as the event:
//	                 ours less floorevent is what our loop and runner add
//	content=shared   every event has the same text and delta
//	content=fresh    every event has its own, made by session.NewEvent. A map of
//	                 one key and a genai content cost more than the event itself
//	context=...      what the models of the LLM loop see: the whole session, or the
//	                 message and the running iteration
//
// # What is read
//
//	cpu-ns/event  user and system time of the process, garbage collection included
//	ns/event      the same by the clock on the wall
//	B/event, allocs/event
//	events/s      of Concurrent
//	req-chars/turn
//	              the characters that a turn of the LLM loop sends, on average: they
//	              do not vary
//	peak-MB       the most resident memory of a process of its own that does the
//	              work once, the test binary's own 20 or so included (Linux)
//
// On a machine with other work, trust cpu-ns, B and allocs; the wall is for
// information. Compare only within one run: the floors are there to say how
// fast the machine was.
//
//	for i in 1 2 3 4 5 6; do go test -run '^$' -bench Loop -benchtime 0.3s; done >new.txt
//	benchstat -col /impl -row /iters -filter '.unit:cpu-ns/event /content:shared' new.txt
package bench
