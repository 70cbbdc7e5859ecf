// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/replay"
)

var update = flag.Bool("update", false, "record runs of made-up definitions that are missing in testdata/runs")

// Recorded runs of made-up definitions, which older versions have written, come to the same end in this version: with the definitions
// and the log as they were then. A file is never recorded anew; if a change is meant, remove it and run the test with -update.
func TestFrozenRuns(t *testing.T) {
	for _, seed := range []uint64{1, 4, 7, 11, 16, 18} {
		file := filepath.Join("testdata", "runs", fmt.Sprintf("%d.jsonl", seed))
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if _, err := os.Stat(file); err != nil && *update {
				dir := t.TempDir()
				makeUp(t, dir, seed)
				record(t, dir, file, nil)
			}
			text, same := play(t, file)
			if !same {
				t.Errorf("%s", text)
			}
		})
	}
}

// play plays a recorded run with its own definition, and returns the report and whether nothing differs.
func play(t *testing.T, file string) (text string, same bool) {
	t.Helper()
	return playAs(t, file, nil)
}

// playAs plays a recorded run with a definition. With nil, the definition is its own, and a changed request a difference.
func playAs(t *testing.T, file string, def *definition.Definition) (text string, same bool) {
	t.Helper()
	log, err := runlog.ReadFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := replay.Read(log.Run(), &program.Code{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := rec.Replay(t.Context(), replay.Config{Definition: cmp.Or(def, rec.Definition), Exact: def == nil})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := rep.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String(), rep.Same()
}
