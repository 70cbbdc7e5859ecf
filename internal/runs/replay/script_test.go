// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/runs/replay"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
)

// The script of a recorded run of each example answers its agents so that the run comes to the same end.
func TestScript(t *testing.T) {
	files, err := filepath.Glob("../../../examples/testdata/runs/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	played, failed := 0, 0
	for _, file := range files {
		log, err := runlog.ReadFile(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := replay.Read(log.Run(), &program.Code{})
		if err != nil {
			t.Fatal(err)
		}
		text, lost, err := rec.Script()
		if err != nil {
			t.Fatal(err)
		}
		if text == nil {
			continue
		}
		script, err := scripted.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", file, err, text)
		}
		n := len(script.Answers)
		script.Answers = slices.DeleteFunc(script.Answers, func(a scripted.Answer) bool { return a.Error != nil }) // a live request is not repeated
		failed += n - len(script.Answers)
		llm, err := scripted.New(script)
		if err != nil {
			t.Fatal(err)
		}
		cfg := replay.Config{Definition: rec.Definition, Live: make(map[string]bool), Model: func(context.Context, string) (model.LLM, error) { return llm, nil }}
		for a := range rec.Definition.Root.All {
			if cfg.Live[a.Name] = a.Type == definition.TypeLLM; cfg.Live[a.Name] {
				played++
			}
		}
		rep, err := rec.Replay(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := rep.WriteText(&b); err != nil || !rep.Same() {
			t.Errorf("%s, without %s: %v\n%s\n%s", filepath.Base(file), strings.Join(lost, "; "), err, &b, text)
		}
	}
	if played < 10 || failed == 0 {
		t.Errorf("only %d agents were played, and %d requests failed", played, failed)
	}
}
