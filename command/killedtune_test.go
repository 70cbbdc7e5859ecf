// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// A tune whose process is killed again and again hands back the same patch with the same verdict as one that nobody disturbs.
func TestKilledTuneKeepsItsResult(t *testing.T) {
	longtest.WithoutRace(t)
	known := adopt(t)
	k := newAttack(t, "refrain", t.TempDir(), *seed)
	k.known = known
	if err := os.CopyFS(k.dir, os.DirFS("internal/writing/templates/tune")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(k.dir, "tune.yaml") // the evals of the steps are in the store of the run
	text, err := os.ReadFile(file)
	if err == nil {
		own := strings.NewReplacer("[refrain, eval,", "[refrain, eval, --store, "+k.store+",", "samples: 3", "samples: 2")
		err = os.WriteFile(file, []byte(own.Replace(string(text))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	result := func(p *process) string { // without what differs between any two runs
		return regexp.MustCompile(`(?m)^eval .*\n|^ *For information: .*\n`).ReplaceAllString(p.stdout.String(), "")
	}
	const verdict = "better: passed +1.00 (+0.59 … +1.00)"
	first := ""
	for round := range longtest.N(1, 10) {
		id := "tune" + string(rune('a'+round))
		p := k.start("run", "tune.yaml", "--session", id)
		killed := 0
		for over := false; !over; {
			if killed < longtest.N(2, 8) {
				select {
				case <-time.After(time.Duration(50+k.dice.IntN(900)) * time.Millisecond):
					_ = p.Process.Kill()
					killed++
				case <-p.ended:
				}
			}
			k.end(p)
			if over = p.code() >= 0; !over {
				if k.stand(id) == nil { // it was killed before it began
					p = k.start("run", "tune.yaml", "--session", id)
				} else {
					p = k.start("resume", id)
				}
			}
		}
		if whole := k.do("show", id, "--json"); whole.code() != 0 || !oneOf(whole.stdout.String(), `"target_reached"`) {
			t.Errorf("%s: %s", id, &whole.stdout)
		}
		if killed > 0 && strings.Contains(p.stderr.String(), "the run has ended: it completed") {
			continue // it was killed between its end and its output
		}
		if p.code() != 0 || !oneOf(p.stdout.String(), verdict) || !oneOf(p.stdout.String(), "\n+instructions: Answer the question of a customer of our bakery in one") {
			t.Errorf("%d kills, exit code %d: %s\n%s", killed, p.code(), &p.stdout, &p.stderr)
		}
		if whole := result(p); first == "" {
			first = whole
		} else if whole != first {
			t.Errorf("%d kills: %s\nwant\n%s", killed, whole, first)
		}
	}
}
