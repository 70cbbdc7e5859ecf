// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
	"github.com/refrain-dev/refrain/command/internal/runstore"
	"github.com/refrain-dev/refrain/command/internal/term"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
)

// Two servers that are killed again and again while they remove old runs leave nothing of them in the end, and whatever stays is whole.
func TestKilledServersRemoveOldRuns(t *testing.T) {
	longtest.WithoutRace(t)
	for name, open := range map[string]func(*testing.T) string{
		"sqlite": func(*testing.T) string { return "sqlite:.refrain/refrain.db" }, "postgres": crashPostgres,
	} {
		t.Run(name, func(t *testing.T) { killRemovals(t, open(t)) })
	}
}

func killRemovals(t *testing.T, spec string) {
	dir, old := t.TempDir(), longtest.N(8, 60)
	r := &refrains{TB: t, dir: dir, binary: "refrain", store: spec}
	write(t, filepath.Join(dir, "bread.yaml"), "name: bread\nworkspace: {from: src}\nmax_iterations: 1\nsub_agents:\n"+
		"  - {name: bake, command: [sh, -c, 'date +%N >loaf']}\n")
	write(t, filepath.Join(dir, "asks.yaml"), "name: asks\ntype: human\nask: answer\nquestion: Which?\n")
	if err := os.Mkdir(filepath.Join(dir, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "src", "flour"), "rye\n")
	var gone []string
	for i := range old {
		gone = append(gone, fmt.Sprintf("r_old%d", i))
	}
	for _, id := range append(slices.Clone(gone), "r_base") {
		if p := r.do("run", "bread.yaml", "--session", id); p.code() != 0 {
			t.Fatalf("%s\n%s", &p.stdout, &p.stderr)
		}
	}
	r.do("run", "asks.yaml", "--session", "r_waits")
	if p := r.do("fork", "r_base"); p.code() != 0 { // the fork is paused
		t.Fatalf("%s\n%s", &p.stdout, &p.stderr)
	}
	t.Chdir(dir)
	store, closeStore := r.open()
	defer closeStore()
	for _, id := range append(slices.Clone(gone), "r_base") {
		saveOf(t, r, store, id)
	}
	all := func(app string) (ids []string) {
		t.Helper()
		got, err := store.List(t.Context(), &session.ListRequest{AppName: runstore.AppName + app, UserID: runstore.UserName, Brief: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range got.Sessions {
			ids = append(ids, s.ID())
		}
		return ids
	}
	oldOnes := func() int {
		return len(slices.DeleteFunc(all(""), func(id string) bool { return !slices.Contains(gone, id) }))
	}
	serve := func() (two []*process) {
		for range 2 {
			two = append(two, r.start("serve", "--keep", "1s", "--addr", "127.0.0.1:0"))
		}
		return two
	}
	kills := 0
	for deadline := time.Now().Add(2 * time.Minute); oldOnes() > 0; {
		before, two := oldOnes(), serve()
		for left := before; left == before || kills >= longtest.N(2, 15) && left > 0; left = oldOnes() {
			if time.Now().After(deadline) {
				t.Fatalf("%d runs are left\n%s", left, &two[0].stderr)
			}
		}
		for _, p := range two {
			_ = p.Process.Kill()
			<-p.ended
		}
		kills++
	}
	t.Logf("%d runs were removed by two servers that were killed %d times", old, kills)
	if ids := all(""); len(ids) != 3 || !slices.Contains(ids, "r_base") || !slices.Contains(ids, "r_waits") {
		t.Errorf("the runs are %v", ids)
	}
	for _, app := range []string{".mail", "-notify"} {
		if ids := slices.DeleteFunc(all(app), func(id string) bool { return !slices.Contains(gone, id) }); len(ids) > 0 {
			t.Errorf("%s%s has %v", runstore.AppName, app, ids)
		}
	}
	for pattern, want := range map[string]int{
		".refrain/files/runs/*": 1, ".refrain/messages/r_*": 1, // those of r_base; its fork has not begun
	} {
		if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) != want {
			t.Errorf("%s: %v", pattern, found)
		}
	}
	files := filesOf(t, r)
	for _, id := range append(slices.Clone(gone), "r_base") {
		got, err := files.List(t.Context(), &artifact.ListRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id})
		if err != nil || (len(got.FileNames) > 0) != (id == "r_base") {
			t.Errorf("the saved files of %s: %v, %v", id, got, err)
		}
	}
	if p := r.do("show", "r_base", "--files"); p.code() != 0 || !strings.Contains(p.stdout.String(), "loaf") {
		t.Errorf("%s\n%s", &p.stdout, &p.stderr)
	}
	if p := r.do("verify", "r_base"); p.code() != 0 {
		t.Errorf("%s\n%s", &p.stdout, &p.stderr)
	}
}

// storeEnv is an environment without variables.
var storeEnv = &term.Env{Getenv: func(string) string { return "" }, Stderr: os.Stderr}

func filesOf(t *testing.T, r *refrains) *disk.Service {
	t.Helper()
	files, err := disk.OpenFor(filepath.Join(r.dir, ".refrain", "artifacts"), runstore.Owner(storeEnv, r.store))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	return files
}

// saveOf gives a run a saved file, a message, a mailbox and an outbox.
func saveOf(t *testing.T, r *refrains, store session.Service, id string) {
	t.Helper()
	if _, err := filesOf(t, r).Save(context.Background(), &artifact.SaveRequest{AppName: runstore.AppName, UserID: runstore.UserName, SessionID: id,
		FileName: "report.md", Part: genai.NewPartFromText("baked")}); err != nil {
		t.Fatal(err)
	}
	for _, app := range []string{".mail", "-notify"} {
		_, err := store.Create(t.Context(), &session.CreateRequest{AppName: runstore.AppName + app, UserID: runstore.UserName, SessionID: id})
		if err != nil && !strings.Contains(err.Error(), "exist") {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(r.dir, ".refrain", "messages"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(r.dir, ".refrain", "messages", id+owned(r)), "hello\n")
}

// owned is the end of the name of a file of messages.
func owned(r *refrains) string {
	return strings.TrimPrefix(runstore.MessagesName(storeEnv, r.store, "r"), "r")
}
