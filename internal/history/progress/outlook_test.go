// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
)

var update = flag.Bool("update", false, "write the golden files")

// What an API says of a run keeps its shape.
func TestOutlookKeepsItsShape(t *testing.T) {
	live := new(progress.Live)
	var got []string
	for _, ev := range seedRun(t) {
		live.Add(ev)
		if at := running(live.Tree()); at != nil && at.Address == "refinador_conteudo_iterativo[3]/feedback_collector" && got == nil {
			got = append(got, marshal(t, prose.Outlooks(live.Tree(), prose.English)))
		}
	}
	got = append(got, marshal(t, prose.Outlooks(live.Tree(), prose.Portuguese)))
	for i, name := range []string{"outlook_running.json", "outlook_done.json"} {
		name = filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(name, []byte(got[i]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got[i]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data) + "\n"
}
