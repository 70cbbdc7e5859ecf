// SPDX-License-Identifier: Apache-2.0

// Package bench measures what the framework itself costs: agents and models that answer
// at once, in loops, alone, through a runner, with marks, in a database, and by the
// command. Beside each figure stands a floor of the same run, which does the least of the
// same work by hand, and Eino where it does the same work. It also measures what the input
// of five loops costs, ours and with ADK for Go and Eino. The package is a module of its
// own, so that importers of the library do not inherit the peers. It needs Linux or another
// Unix.
//
//	make gates                                       # every goal, and whether it is met: about five minutes
//	make gates ONLY=resume                           # one of them
//	make bench-cost                                  # what the input of loops costs: a few seconds
//	go test -run '^$' -bench . -benchmem             # the loops alone, for benchstat
//
// After "go mod download" it works without a network.
//
// # What a gate says
//
// TestGates prints a table with a line for each goal:
//
//	what, unit  the work; an event is one that an agent said, marks are part of its cost
//	goal        a line without one is there for comparison
//	measured    the median of the rounds, beside the smallest and the largest
//	floor       the least that the same work costs in the same run, as its median
//
// A round measures ours and its floors in turn. "Own part" is the cost of an event less
// what it costs to make the event and drop it, round by round: rounds are short and many
// there, as other work on the machine comes and goes. Allocations "of 1,000 iterations
// more" are those by which a loop of 2,000 is longer. Above the table stand the
// machine, the time that its disk takes for a write and sync, and the load average. CPU
// times are those of the whole process, in user and system mode, garbage collection
// included. On a machine with other work, trust them, the allocations and the bytes;
// rates, "wall" and the ratio of an append to an INSERT need a quiet machine. Databases
// are in the folder that TMPDIR names, which has to be on a disk.
//
// Programs that are measured as a whole run below ./spent, which reports their time, the
// peak of their memory, and how many bytes they have read. Many runs at once are the
// program ./atonce: the process of these tests has Eino in it, which takes 17 MB.
//
// The exact half of each goal is an ordinary test beside the code that it is about, so
// that CI fails where it is missed: allocations and bytes of an event, commits, reads of
// the log, and growth with the length of a run. No test there reads a clock.
//
// # What input costs
//
// TestCostAgainstPeers runs the loops of ../examples with package keeper in the place of a
// provider: it keeps prompts by the documented rules and counts. What the models say is the
// same for all frameworks, and as long as real answers are. All send their requests with our
// clients of the providers, which leave out what asks for a cache if a request has no hint, as
// those of the peers have none. Steps without a model are functions there that say nothing.
//
// # What is run
//
// Three agents say one event each, iteration after iteration: a text of 40 bytes and a
// state delta of one key. Each event has its own: content that is shared would cost
// nothing, which no run of a person has. In a model loop a writer is followed by a critic
// and a refiner in each iteration; there an event is a turn. The names of the benchmarks
// have dimensions, as benchstat reads them:
//
//	impl=ours        this project
//	impl=marks       the same with the marks of a durable run
//	impl=adk         ADK for Go, through its runner
//	impl=eino        Eino's loop agent; its runner keeps events for the run only. It has
//	                 no marks and no durable runs. Its cost an event grows with the
//	                 iterations, so it stops at 1,000, and in any case at 5 GiB of memory
//	impl=floor       the least Go can do it in: a bare event through three iter.Seq2, and
//	                 for a runner a locked log and a state map
//	impl=floorid     the same with a UUID and a time on every event, as ADK has
//	impl=floorevent  the same as floor with a [session.Event] as the event
//	context=...      what the models of the model loop see: the whole session, or the
//	                 message and the running iteration
//	callback=...     whether its agents have a BeforeModelCallback
//
//	for i in 1 2 3 4 5 6; do go test -run '^$' -bench Loop -benchtime 0.3s; done >new.txt
//	benchstat -col /impl -row /iters -filter '.unit:cpu-ns/event' new.txt
package bench
