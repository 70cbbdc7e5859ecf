// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// told is a log of marks.
type told struct {
	t   *testing.T
	evs []*session.Event
}

func (l *told) mark(at session.Address, iteration int, kind mark.Kind, data any) {
	l.t.Helper()
	m, err := mark.New(kind, data)
	if err != nil {
		l.t.Fatal(err)
	}
	l.evs = append(l.evs, &session.Event{Address: at, Iteration: iteration, Mark: m})
}

// F11, F12: what a run has used, and how its state grew, in words and for programs.
func TestResources(t *testing.T) {
	l := &told{t: t}
	for i, bytes := range []int64{500, 0, 1500, 1300} { // of the second it is unknown
		l.mark("refine", 0, mark.KindIterationFinished, loop.IterationRecord{Number: i + 1, StateSize: bytes})
		l.mark("refine[1]/inner", 1, mark.KindIterationFinished, loop.IterationRecord{Number: 1, StateSize: 9_999_999})
	}
	l.mark("refine", 0, mark.KindLoopStopped, &loop.StopRecord{})
	l.mark("story/first", 0, mark.KindIterationFinished, loop.IterationRecord{Number: 1, StateSize: 7})
	l.mark("story/first", 0, mark.KindLoopStopped, &loop.StopRecord{})
	l.evs = append(l.evs[len(l.evs)-2:], l.evs[:len(l.evs)-2]...) // another loop before
	var some progress.Resources
	for _, ev := range l.evs {
		some.Add(ev)
	}
	some.Wall, some.Active = 4300*time.Millisecond, 11900*time.Millisecond // it was resumed
	some.CPU, some.Programs = new(400*time.Millisecond), new(61*time.Second)
	some.PeakMemory = new(int64(41_234_567))
	for _, c := range []struct {
		used  progress.Resources
		words string
		lines [][2]string
		json  string
	}{
		{
			some, "12s",
			[][2]string{
				{"active", "12s"}, {"CPU time", "400ms"}, {"CPU time of programs", "1m 01s"}, {"peak memory", "41.2MB"},
				{"state at the end", "1.3kB"}, {"largest state", "1.5kB, after iteration 3"},
			},
			`{"wall_seconds":4.3,"active_seconds":11.9,"cpu_seconds":0.4,"cpu_programs_seconds":61,"peak_memory_bytes":41234567,"peak_memory_programs_bytes":null,` +
				`"state_sizes":[{"iteration":1,"bytes":500},{"iteration":3,"bytes":1500},{"iteration":4,"bytes":1300}]}`,
		},
		{
			progress.Resources{Wall: time.Second, Saved: progress.Saved{Chars: 48210, Requests: 14}}, "1s",
			[][2]string{{"context saved", "48,210 characters, about 12,052 tokens"}},
			`{"wall_seconds":1,"active_seconds":null,"cpu_seconds":null,"cpu_programs_seconds":null,"peak_memory_bytes":null,"peak_memory_programs_bytes":null,` +
				`"context_saved":{"chars":48210,"requests":14,"tokens":12052}}`,
		},
	} {
		if got := c.used.String(); got != c.words {
			t.Errorf("%s\nwant %s", got, c.words)
		}
		if diff := cmp.Diff(c.lines, c.used.Lines()); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
		if b, err := json.Marshal(c.used); err != nil || string(b) != c.json {
			t.Errorf("%s, %v\nwant %s", b, err, c.json)
		}
	}
}

// F10: what models have used is told, and what nobody knows is unknown.
func TestResourcesOfModels(t *testing.T) {
	for usage, want := range map[string]string{
		`{"calls":4,"input_tokens":2000,"output_tokens":210,"cost":0.0381}`: "4 model calls, 2,210 tokens, cost 0.0381, 2s",
		`{"calls":4,"input_tokens":2000,"output_tokens":210}`:               "4 model calls, 2,210 tokens, 2s",
		`{"calls":1}`: "1 model call, 2s",
		`{"calls":4,"input_tokens":2000,"output_tokens":210,"cost":0.0381,"cached_tokens":1240,"cache_write_tokens":300,"cache_saved":0.41}`: "4 model calls, " +
			"2,210 tokens, cost 0.0381, 62% of input from the cache, 0.41 saved, 2s",
		`{"calls":4,"input_tokens":2000,"output_tokens":210,"cost":0.0381,"cached_tokens":30}`: "4 model calls, 2,210 tokens, cost 0.0381, 2s",
		`{"calls":1234567,"output_tokens":1,"estimated":true,"unknown":true,"cost":3}`:         "1,234,567 model calls, about 1 token, cost 3.00 or more, 2s",
		`{"calls":3,"output_tokens":1,"known_cost":0.4}`:                                       "3 model calls, 1 token, cost 0.40 or more, 2s",
		`{}`: "2s",
	} {
		l := &told{t: t}
		l.mark("refine[1]/critic", 1, mark.KindStepFinished, mark.StepFinished{Usage: json.RawMessage(usage)}) // is in the root's
		l.mark("refine", 0, mark.KindStepFinished, mark.StepFinished{Usage: json.RawMessage(usage)})
		r := progress.Resources{Wall: 2 * time.Second}
		for _, ev := range l.evs {
			r.Add(ev)
		}
		if got := r.String(); got != want {
			t.Errorf("%s: %s\nwant %s", usage, got, want)
		}
	}
}

// Sizes read well, whatever they are, and only the last of very many are kept.
func TestResourcesOfLargeRuns(t *testing.T) {
	for bytes, want := range map[int64]string{999: "999B", 1000: "1.0kB", 999_949: "999.9kB", 999_951: "1.0MB", 5e9: "5.0GB", 7e12: "7.0TB"} {
		r := progress.Resources{States: []progress.StateSize{{Iteration: 2, Bytes: bytes}}}
		if got := r.Lines()[0][1]; got != want {
			t.Errorf("%d: %s", bytes, got)
		}
	}
	l := &told{t: t}
	for i := range 1200 {
		l.mark("refine", 0, mark.KindIterationFinished, loop.IterationRecord{Number: i + 1, StateSize: 10})
	}
	var r progress.Resources
	for _, ev := range l.evs {
		r.Add(ev)
	}
	if len(r.States) != 1000 || r.States[0].Iteration != 201 || r.States[999].Iteration != 1200 {
		t.Errorf("%d states from %+v", len(r.States), r.States[0])
	}
}
