// SPDX-License-Identifier: Apache-2.0

package show_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/show"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// The JSON of a run has every iteration, also those that the tree of a long run leaves out: of the outer loop, and of inner loops
// within them. It is indented as encoding/json indents.
func TestShowJSONHasAllIterationsOfNestedLoops(t *testing.T) {
	file := filepath.Join(t.TempDir(), "long.jsonl")
	nested(t, file, 130, 60)
	var out, indented bytes.Buffer
	e := &term.Env{Getenv: func(string) string { return "" }, Stdout: &out, Stderr: os.Stderr}
	if err := show.Run(t.Context(), e, show.Options{JSON: true}, file); err != nil {
		t.Fatal(err)
	}
	log, err := runlog.ReadFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := log.Run().Report(t.Context(), runlog.ReportOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	whole.Run = file
	text, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sorted(t, out.Bytes()), sorted(t, text); got != want {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Errorf("the report is %d bytes long, want %d; it begins to differ with %.300s", len(got), len(want), got[max(0, at-100):])
	}
	if err := json.Indent(&indented, out.Bytes(), "", "  "); err != nil || indented.String() != out.String() {
		t.Errorf("another indentation than that of encoding/json (%v)", err)
	}
}

// sorted returns JSON with the members of objects in one order.
func sorted(t *testing.T, text []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// nested writes the log of a loop of n iterations with a loop of m iterations in each.
func nested(t *testing.T, file string, n, m int) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	enc, seq := json.NewEncoder(w), int64(0)
	add := func(at string, iteration int, kind mark.Kind, data any) {
		seq++
		mk, err := mark.New(kind, data)
		if err != nil {
			t.Fatal(err)
		}
		address := session.Address(at)
		ev := &session.Event{Seq: seq, InvocationID: "run", Author: address.Agent(), Address: address, Iteration: iteration, Mark: mk}
		if err := enc.Encode(ev); err != nil {
			t.Fatal(err)
		}
	}
	loops := func(at string, iteration, n int, each func(at string, i int)) {
		add(at, iteration, mark.KindStepStarted, nil)
		add(at, iteration, mark.KindLoopStarted, loop.Plan{Steps: []loop.Step{{Name: "write"}, {Name: "sum", Finalizer: true}}})
		for i := 1; i <= n; i++ {
			each(fmt.Sprintf("%s[%d]/", at, i), i)
			add(at, iteration, mark.KindIterationFinished, loop.IterationRecord{Number: i, Complete: true})
		}
		add(at, iteration, mark.KindLoopStopped, loop.StopRecord{Reason: loop.ReasonMaxIterations, Iterations: n,
			Detail: `a "quoted" text, with { [ \ and <tags>` + strings.Repeat(" ", 2)})
		add(at, iteration, mark.KindStepFinished, mark.StepFinished{})
	}
	loops("all", 0, n, func(at string, i int) {
		loops(at+"part", i, m, func(at string, i int) {
			add(at+"write", i, mark.KindStepStarted, nil)
			add(at+"write", i, mark.KindStepFinished, mark.StepFinished{})
		})
	})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}
