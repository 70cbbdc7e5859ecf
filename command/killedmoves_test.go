// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

var askedAbout = regexp.MustCompile(`its call ID is (call-[a-z0-9]+)`)

// answer resolves calls in doubt: it asks the witness whether each was made.
func (k *attack) answer(run string, st *runlog.Row) {
	k.Helper()
	if len(st.Waits) == 0 {
		k.Errorf("run %s waits, and does not say what for", run)
	}
	for _, q := range st.Waits {
		id := askedAbout.FindStringSubmatch(q.Text)
		if q.Kind != mark.AskResolution || id == nil {
			k.Errorf("run %s asks (%s) %q", run, q.Kind, q.Text)
			return
		}
		args := []string{"resolve", run, "--call", q.ID, "--retry"}
		if e := k.w.find(id[1]); e != nil {
			args = []string{"resolve", run, "--call", q.ID, "--result", "done " + e.job}
		}
		if p := k.do(args...); p.code() != 0 && p.code() != 4 {
			k.Errorf("%q: exit code %d\n%s", args, p.code(), &p.stderr)
		}
		k.counts["resolve"]++
	}
}

// fork makes a run of what another one has done so far, or a part of it.
func (k *attack) fork(b *branch, dice *rand.Rand) *branch {
	k.Helper()
	args := []string{"fork", b.id}
	if n := k.events(b.id); dice.IntN(3) > 0 && n > 2 {
		args = append(args, "--at-event", fmt.Sprint(2+dice.IntN(n-1)))
	}
	p := k.do(args...)
	if p.code() != 0 {
		if !oneOf(p.stderr.String(), "iteration") {
			k.Errorf("%q: %s", args, &p.stderr)
		}
		return nil
	}
	b.forks++
	k.counts["fork"]++
	fork := &branch{id: strings.TrimSpace(p.stdout.String()), run: b.run, calls: b.calls, forks: 1, begun: make(map[string]string)}
	jobs := k.begun(fork.id)
	for _, e := range b.done {
		if jobs[e.job] {
			fork.begun[e.job] = e.id
		}
	}
	return fork
}

// begun are the jobs of calls that a run's log says have begun, and says no end of.
func (k *attack) begun(id string) map[string]bool {
	k.Helper()
	store, closeStore := k.open()
	defer closeStore()
	got, err := store.Get(k.Context(), &session.GetRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id})
	if err != nil {
		k.Fatal(err)
	}
	calls, jobs, steps := make(map[string]string), make(map[string]bool), make(map[session.Address]string)
	for ev := range got.Session.Events().All() {
		if ev.Mark == nil && ev.Content != nil {
			for _, p := range ev.Content.Parts {
				switch {
				case p.FunctionCall != nil:
					calls[string(ev.Address)+p.FunctionCall.ID], _ = p.FunctionCall.Args["job"].(string)
				case p.FunctionResponse != nil:
					delete(jobs, calls[string(ev.Address)+p.FunctionResponse.ID])
				}
			}
			continue
		}
		var d mark.Dispatched
		switch {
		case ev.Mark == nil:
		case ev.Mark.Kind == mark.KindDispatched && ev.Mark.Decode(&d) == nil:
			for _, call := range d.Calls {
				jobs[calls[string(ev.Address)+call]] = true
			}
		case ev.Mark.Kind == mark.KindStepStarted && onceOnly[ev.Address.Agent()]:
			job := textOf(got.Session, ev.Address.Agent()+"_job")
			steps[ev.Address], jobs[job] = job, true
		case ev.Mark.Kind == mark.KindStepFinished && steps[ev.Address] != "":
			delete(jobs, steps[ev.Address])
		}
	}
	return jobs
}

// textOf is a text in the state of a run; empty if there is none.
func textOf(s session.Session, key string) string {
	v, _ := s.State().Get(key)
	text, _ := v.(string)
	return text
}

func (k *attack) events(id string) int {
	k.Helper()
	store, closeStore := k.open()
	defer closeStore()
	got, err := store.Get(k.Context(), &session.GetRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id})
	if err != nil {
		k.Fatal(err)
	}
	return got.Session.Events().Len()
}

// move takes a run to another ID, by way of a file.
func (k *attack) move(b *branch, dice *rand.Rand) {
	k.Helper()
	b.moves++
	to := fmt.Sprintf("%s-%d", b.id, b.moves)
	file := to + ".jsonl"
	if p := k.do("export", b.id, "-o", file); p.code() != 0 {
		k.Errorf("export: %s", &p.stderr)
		return
	}
	if dice.IntN(2) == 0 {
		p := k.start("import", file, "--as", to)
		time.Sleep(time.Duration(dice.Int64N(int64(200 * time.Millisecond))))
		_ = p.Process.Kill()
		k.end(p)
		k.counts["import killed"]++
		if k.stand(to) != nil {
			if p := k.do("rm", to, "--yes"); p.code() != 0 {
				k.Errorf("a run that was half imported cannot be removed: %s", &p.stderr)
			}
		}
	}
	if p := k.do("import", file, "--as", to); p.code() != 0 {
		k.Errorf("import: %s", &p.stderr)
		return
	}
	b.id = to
	k.counts["import"]++
	if err := os.Remove(filepath.Join(k.dir, file)); err != nil && !errors.Is(err, os.ErrNotExist) {
		k.Error(err)
	}
}
