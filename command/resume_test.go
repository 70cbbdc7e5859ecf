// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sessiontest"
)

// resumable makes a run of the given number of iterations of two steps that make no calls, in a new
// folder, which becomes the working directory. fork makes a run that has all of these iterations behind it, and
// only has to stop.
func resumable(t testing.TB, iterations int) (fork func() string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	definition := fmt.Sprintf("name: two\ntype: loop\nstate: {n: 0}\nmax_iterations: %d\ntimeout: 10h\n"+
		"sub_agents:\n  - {name: a, set: {n: state.n + 1}}\n  - {name: b, set: {n: state.n + 1}}\n", iterations)
	if err := os.WriteFile(filepath.Join(dir, "loop.yaml"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) string {
		code, out, errs := refrain(t, args...)
		if code != term.ExitOK {
			t.Fatalf("refrain %s: code %d\n%s", strings.Join(args, " "), code, errs)
		}
		return strings.TrimSpace(out)
	}
	command("run", "loop.yaml", "--session", "first", "--exit-zero-on-limit")
	return func() string { return command("fork", "first") }
}

// BenchmarkResume resumes a run with the command, after 100 iterations and up to 10,000.
func BenchmarkResume(b *testing.B) {
	for _, iterations := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(iterations), func(b *testing.B) {
			fork := resumable(b, iterations)
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				id := fork()
				b.StartTimer()
				if code, _, errs := refrain(b, "resume", id, "--exit-zero-on-limit"); code != term.ExitOK {
					b.Fatal(errs)
				}
			}
		})
	}
}

// The command reads the log of a run that it resumes once: for its definition, for the replay and
// for what it shows of it.
func TestResumeReadsTheLogOnce(t *testing.T) {
	fork := resumable(t, longtest.N(300, 3000))
	id := fork()
	store, closeStore, err := runstore.MakeService(t.Context(), &term.Env{Getenv: stateOnly, Stderr: os.Stderr}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeStore() }()
	svc := sessiontest.Count(store)
	got, err := store.Get(t.Context(), &session.GetRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id,
		NumRecentEvents: 1})
	if err != nil {
		t.Fatal(err)
	}
	n := session.ViewOf(got.Session).LastSeq()
	var out, errs bytes.Buffer
	options := []Option{Config{SessionService: svc, Name: "refrain"}}
	if code := run(t.Context(), options, []string{"resume", id, "--exit-zero-on-limit"}, stateOnly, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("code %d\n%s", code, errs.String())
	}
	const pages = 2 * 64 // at the end of the log, such as the answer's
	if svc.Gets() != 1 || svc.Outlined() != int(n) || svc.Loaded() > int(n)+pages {
		t.Errorf("%d events: %d sessions fetched, %d events read in outline and %d whole, want one, each event once, and "+
			"for the seal at most once more", n, svc.Gets(), svc.Outlined(), svc.Loaded())
	}
}

// Twice the iterations are twice the work: what the command allocates for an iteration that it
// replays does not grow with the log.
func TestResumeGrowsWithTheLog(t *testing.T) {
	longtest.WithoutRace(t) // it counts allocations
	perIteration := func(iterations int) (allocs float64) {
		id := resumable(t, iterations)()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if code, _, errs := refrain(t, "resume", id, "--exit-zero-on-limit"); code != term.ExitOK {
			t.Fatal(errs)
		}
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / float64(iterations)
	}
	many := longtest.N(2000, 10_000)
	if few, more := perIteration(200), perIteration(many); more > 1.1*few {
		t.Errorf("an iteration of %d takes %.0f allocations to resume, one of 200 takes %.0f", many, more, few)
	} else {
		t.Logf("%.0f and %.0f allocations", few, more)
	}
}
