// SPDX-License-Identifier: Apache-2.0

//go:build linux

package temporal_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/temporal"
)

var measure = flag.Bool("measure", false, "measure what runs on a cluster cost; make bench-temporal")

// pair has two steps in each iteration.
const pair = `name: pair
max_iterations: %d
sub_agents:
  - {name: first, command: [%s]}
  - {name: second, command: [%[2]s]}
`

// costs are of one measurement.
type costs struct {
	wall, server, database, rest time.Duration // rest is the CPU time of the workers and of what they start
}

// TestMeasure prints a table of 100 iterations of 2 commands: by the command alone, on Temporal, and as a
// workflow that somebody has written by hand, in turns; and then what 200 runs at once need.
func TestMeasure(t *testing.T) {
	if !*measure {
		t.Skip("make bench-temporal")
	}
	t.Setenv("FSYNC", "on")
	c, db := newPostgresCluster(t)
	b := &bench{cluster: c, db: db}
	b.load()
	b.serial()
	b.many("true", 10, 2*time.Second)
	b.many("true", 10, 10*time.Second)
	b.many("sleep, '1'", 5, 10*time.Second)
	b.load()
}

type bench struct {
	*cluster
	db *database
}

func (b *bench) load() {
	text, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("load average: %s", text)
}

// serial measures one run at a time, in five rounds.
func (b *bench) serial() {
	b.Helper()
	refrain := filepath.Join(b.dir, "refrain")
	build := exec.Command("go", "build", "-o", refrain, "./cmd/refrain")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	text := fmt.Sprintf(pair, 100, "'true'")
	req := b.request(text)
	b.worker("one")
	written := b.byHand()
	ways := []struct {
		name string
		do   func(round int) error
	}{
		{"refrain run", func(int) error {
			cmd := exec.Command(refrain, "run", filepath.Join(b.dir, "loop.yaml"), "--store", "postgres:"+b.dsn,
				"--progress", "quiet", "--exit-zero-on-limit")
			cmd.Dir = b.dir
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%w\n%s", err, out)
			}
			return nil
		}},
		{"on Temporal", func(int) error {
			id, err := temporal.Start(b.Context(), b.Client, b.sup, req, options)
			if err == nil {
				_, err = b.result(id)
			}
			return err
		}},
		{"written by hand", func(round int) error {
			run, err := b.ExecuteWorkflow(b.Context(), client.StartWorkflowOptions{ID: fmt.Sprint("hand", round),
				TaskQueue: "hand"}, written, 100)
			if err == nil {
				err = run.Get(b.Context(), nil)
			}
			return err
		}},
	}
	all := make([][]costs, len(ways))
	for round := range 5 {
		for i, way := range ways {
			all[i] = append(all[i], b.cost(func() {
				if err := way.do(round); err != nil {
					b.Fatalf("%s: %v", way.name, err)
				}
			}))
		}
	}
	fmt.Println("\n100 iterations of 2 commands, the median of 5 rounds, in seconds:")
	fmt.Printf("%-16s %8s %12s %12s %12s\n", "", "wall", "CPU Temporal", "CPU database", "CPU the rest")
	for i, way := range ways {
		m := median(all[i])
		fmt.Printf("%-16s %8.2f %12.2f %12.2f %12.2f\n", way.name, m.wall.Seconds(), m.server.Seconds(), m.database.Seconds(),
			m.rest.Seconds())
	}
}

// byHand is a workflow of the same steps, an activity each.
func (b *bench) byHand() func(workflow.Context, int) error {
	b.Helper()
	step := func(ctx context.Context) error { return exec.CommandContext(ctx, "true").Run() }
	written := func(ctx workflow.Context, n int) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
		for range 2 * n {
			if err := workflow.ExecuteActivity(ctx, "step").Get(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	}
	w := worker.New(b.Client, "hand", worker.Options{})
	w.RegisterWorkflowWithOptions(written, workflow.RegisterOptions{Name: "byHand"})
	w.RegisterActivityWithOptions(step, activity.RegisterOptions{Name: "step"})
	if err := w.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Stop)
	return written
}

// many measures 200 runs at once, over two workers.
func (b *bench) many(command string, iterations int, heartbeat time.Duration) {
	b.Helper()
	const runs = 200
	req := b.request(fmt.Sprintf(pair, iterations, command))
	opts := temporal.Options{TaskQueue: "many", Heartbeat: heartbeat}
	var hands []*exec.Cmd
	for _, name := range []string{"one of many", "another"} {
		hands = append(hands, b.employ(place{Name: name, MaxRuns: 100, TaskQueue: "many", Heartbeat: heartbeat}))
	}
	ids := make([]string, runs)
	used := b.used(hands...)
	most := 0
	cost := b.cost(func() {
		var starting sync.WaitGroup
		next := make(chan int)
		for range 8 {
			starting.Go(func() {
				for i := range next {
					var err error
					if ids[i], err = temporal.Start(b.Context(), b.Client, b.sup, req, opts); err != nil {
						b.Error(err)
					}
				}
			})
		}
		for i := range runs {
			next <- i
		}
		close(next)
		starting.Wait()
		for _, id := range ids {
			if st, err := b.result(id); err != nil || st.Status != mark.RunCompleted {
				b.Errorf("%+v, %v", st, err)
			}
			most = max(most, len(b.db.backends()))
		}
	})
	used = b.used(hands...) - used
	events := int64(0)
	for _, id := range ids {
		st, err := b.sup.Status(b.Context(), id)
		if err != nil {
			b.Error(err)
		}
		events += st.Seq
	}
	fmt.Printf("\n%d runs at once of %d iterations of 2 commands (%s), over 2 workers of 100 runs, heartbeat %s:\n"+
		"wall %.1f s, CPU Temporal %.1f s, database %.1f s, workers %.1f s; %.0f steps and %.0f events a second; "+
		"%d connections to the database\n", runs, iterations, command, heartbeat, cost.wall.Seconds(), cost.server.Seconds(),
		cost.database.Seconds(), used.Seconds(), float64(runs*iterations*2)/cost.wall.Seconds(),
		float64(events)/cost.wall.Seconds(), most)
	for _, h := range hands {
		_ = h.Process.Signal(syscall.SIGTERM)
		_ = h.Wait()
	}
}

// cost measures something.
func (b *bench) cost(do func()) costs {
	b.Helper()
	before := costs{server: cpuOf(b.server), database: b.db.used(), rest: ownCPU()}
	began := time.Now()
	do()
	return costs{wall: time.Since(began), server: cpuOf(b.server) - before.server, database: b.db.used() - before.database,
		rest: ownCPU() - before.rest}
}

// used is the CPU time of workers and of what they have waited for.
func (b *bench) used(all ...*exec.Cmd) (d time.Duration) {
	for _, cmd := range all {
		d += cpuOf(cmd.Process.Pid)
	}
	return d
}

// used is the CPU time of the database: of its processes, and of those that have ended.
func (db *database) used() time.Duration {
	d := cpuOf(db.postmaster())
	for _, pid := range db.backends() {
		d += cpuOf(pid)
	}
	return d
}

func (db *database) postmaster() int {
	text, err := os.ReadFile(filepath.Join(db.dir, "data", "postmaster.pid"))
	if err != nil {
		db.Fatal(err)
	}
	pid, _, _ := strings.Cut(string(text), "\n")
	n, _ := strconv.Atoi(pid)
	return n
}

// backends are the processes of the database's connections.
func (db *database) backends() (all []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", db.postmaster()))
	for f := range strings.FieldsSeq(string(text)) {
		title, _ := os.ReadFile(filepath.Join("/proc", f, "cmdline"))
		if n, err := strconv.Atoi(f); err == nil && strings.Contains(string(title), "refrain postgres") {
			all = append(all, n)
		}
	}
	return all
}

// cpuOf is the CPU time of a process and of the children that it has waited for.
func cpuOf(pid int) (d time.Duration) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(text), ") ")
	f := strings.Fields(rest)
	for i := 11; i < 15 && i < len(f); i++ { // utime, stime, cutime, cstime
		n, _ := strconv.ParseInt(f[i], 10, 64)
		d += time.Duration(n) * 10 * time.Millisecond
	}
	return d
}

func ownCPU() time.Duration { return cpuOf(os.Getpid()) }

func median(all []costs) (m costs) {
	pick := func(of func(costs) time.Duration) time.Duration {
		var ds []time.Duration
		for _, c := range all {
			ds = append(ds, of(c))
		}
		slices.Sort(ds)
		return ds[len(ds)/2]
	}
	return costs{pick(func(c costs) time.Duration { return c.wall }), pick(func(c costs) time.Duration { return c.server }),
		pick(func(c costs) time.Duration { return c.database }), pick(func(c costs) time.Duration { return c.rest })}
}
