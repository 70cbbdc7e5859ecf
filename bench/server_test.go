// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
)

var serving = flag.Bool("server", false, "measure refrain serve")

// The clients that watch at once, and the runs that go on.
const (
	watchers = 200
	goingOn  = 1000
)

// TestServer measures refrain serve with a database, as people start it, and prints a table. The
// clients are in this process, on the same machine. No figure has a goal.
func TestServer(t *testing.T) {
	if !*serving {
		t.Skip("run with -server, on a machine that is quiet")
	}
	var tb table
	began, before := time.Now(), loadAverage()
	for _, part := range []gate{{"one", oneRunWatched}, {"many", manyWatched}, {"long", longRunOpened}} {
		t.Run(part.name, func(t *testing.T) { part.measure(t, &tb) })
	}
	fmt.Printf("\n%s\nload average %s at the beginning, %s at the end; %s\n\n", machine(), before, loadAverage(),
		time.Since(began).Round(time.Second))
	if err := tb.print(); err != nil {
		t.Error(err)
	}
}

// climbing is a loop of three steps that count and score, with ten events an iteration.
func climbing(name string, iterations int, pause string) string {
	return fmt.Sprintf(`
name: %s
type: loop
max_iterations: %d
timeout: 10h
state: {n: 0}
score: {key: height}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - {name: say, text: "Draft {{n}}: a line of words about a bakery and its poster", output_key: words, delay_after: %s}
  - {name: measure, set: {height: "double(state.n %% 97)"}}
`, name, iterations, pause)
}

// served is refrain serve in a process of its own.
type served struct {
	*testing.T
	url    string
	pid    int
	client *http.Client
}

// serveFolder serves a folder with definitions, and a database in it.
func serveFolder(t *testing.T, dir string) *served {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programs(t).refrain, "serve", "--addr", "127.0.0.1:0", "--store", "sqlite:runs.db", "--grace", "1s")
	cmd.Dir = dir
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	where := ""
	for where == "" && lines.Scan() {
		_, where, _ = strings.Cut(lines.Text(), "refrain serves ")
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // runs that a signal stops are no success
	})
	if where == "" {
		t.Fatal("the server does not say where it is")
	}
	return &served{t, where + "/api/v1", cmd.Process.Pid,
		&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}}
}

func (s *served) run(definition string) string {
	s.Helper()
	res, err := s.client.Post(s.url+"/runs", "application/json", strings.NewReader(`{"definition": "`+definition+`"}`))
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	var row struct{ Run string }
	text, err := io.ReadAll(res.Body)
	if err = errors.Join(err, json.Unmarshal(text, &row)); err != nil || row.Run == "" {
		s.Fatalf("start %s: %v %s", definition, err, text)
	}
	return row.Run
}

// timed is how long an answer takes: until its first byte, and until its last.
func (s *served) timed(path string) (first, whole float64, size int) {
	s.Helper()
	began := time.Now()
	res, err := s.client.Get(s.url + path)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	first = float64(time.Since(began))
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		s.Fatalf("%s: %s %v %s", path, res.Status, err, text)
	}
	return first, float64(time.Since(began)), len(text)
}

// memory is what the process of the server has in memory, in bytes.
func (s *served) memory() float64 {
	s.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		s.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte("VmRSS:"))
	n, err := strconv.ParseFloat(strings.Fields(string(rest))[0], 64)
	if err != nil {
		s.Fatal(err)
	}
	return n * 1024
}

// cpu is what the process of the server has used, in nanoseconds.
func (s *served) cpu() float64 {
	s.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.pid))
	if err != nil {
		s.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte(") "))
	sum := 0.0
	for _, field := range strings.Fields(string(rest))[11:13] { // user and system mode, in ticks
		n, _ := strconv.ParseFloat(field, 64)
		sum += n * 1e7
	}
	return sum
}

// heard is what the clients of some streams have got.
type heard struct {
	mu    sync.Mutex
	n     int
	bytes int
	late  series // from an event's time to when it was read
}

// watch reads a stream of server-sent events until each, called with the data of one, is false. stamp
// is the key of the time in it.
func (s *served) watch(ctx context.Context, path, stamp string, h *heard, each func([]byte) bool) error {
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, res.Status)
	}
	key := []byte(`"` + stamp + `":"`)
	in := bufio.NewReaderSize(res.Body, 64<<10)
	n, size, late := 0, 0, series(nil)
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.n, h.bytes, h.late = h.n+n, h.bytes+size, append(h.late, late...)
	}()
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		size += len(line)
		line = line[:0]
		if !ok {
			continue
		}
		if n++; n > 1 { // the first is of what was there before
			if _, rest, ok := bytes.Cut(data, key); ok {
				text, _, _ := bytes.Cut(rest, []byte(`"`))
				if at, err := time.Parse(time.RFC3339Nano, string(text)); err == nil {
					late = append(late, float64(time.Since(at)))
				}
			}
		}
		if !each(data) {
			return nil
		}
	}
}

// all waits for clients, one for each path.
func (s *served) all(ctx context.Context, paths []string, stamp string, each func([]byte) bool) *heard {
	s.Helper()
	h := new(heard)
	var wait sync.WaitGroup
	for _, path := range paths {
		wait.Go(func() {
			if err := s.watch(ctx, path, stamp, h, each); err != nil {
				s.Error(err)
			}
		})
	}
	wait.Wait()
	return h
}

func (tb *table) tellLate(what string, late series) {
	tb.tell(what+", median", "ms", series{late.median()}.in(ms))
	tb.tell(what+", 99 of 100", "ms", series{late.sortedAt(len(late) * 99 / 100)}.in(ms))
}

func goesOn([]byte) bool { return true }

func notEnded(data []byte) bool { return !bytes.Contains(data, []byte(`"kind":"run_ended"`)) }

// One run that 200 clients watch, event by event: as fast as it can, and ten iterations a second.
func oneRunWatched(t *testing.T, tb *table) {
	dir := newFolder(t)
	write(t, dir, "fast.yaml", climbing("fast", 1000, "0s"))
	write(t, dir, "slow.yaml", climbing("slow", 100_000, "100ms"))
	s := serveFolder(t, dir)
	before, began := s.cpu(), time.Now()
	id := s.run("fast")
	h := s.all(t.Context(), slices.Repeat([]string{"/runs/" + id + "/events"}, watchers), "timestamp", notEnded)
	tb.tell("one run at full speed, 200 clients of its events", "k events/s", series{float64(h.n)}.in(1e3*time.Since(began).Seconds()))
	tb.tell("  the server's part", "CPU µs/event", series{s.cpu() - before}.in(float64(h.n)*us))
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	h = s.all(ctx, slices.Repeat([]string{"/runs/" + s.run("slow") + "/events"}, watchers), "timestamp", goesOn)
	tb.tellLate("ten iterations a second, 200 clients: append to client", h.late)
}

// 1,000 runs that go on, an iteration each 5 s, and 200 browsers that watch: as many runs, and
// then the list of all.
func manyWatched(t *testing.T, tb *table) {
	dir := newFolder(t)
	write(t, dir, "slow.yaml", climbing("slow", 100_000, "5s"))
	s := serveFolder(t, dir)
	alone := s.memory()
	var ids []string
	for range goingOn {
		ids = append(ids, s.run("slow"))
	}
	busy := func(seconds int) float64 {
		before := s.cpu()
		time.Sleep(time.Duration(seconds) * time.Second)
		return (s.cpu() - before) / float64(seconds) / 1e7
	}
	tb.tell("1,000 runs going on, an iteration each 5 s", "% of a processor", series{busy(5)})
	driven := s.memory()
	tb.tell("  a run that goes on", "kB", series{(driven - alone) / goingOn}.in(1e3))
	look := func(what string, paths []string, stamp string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var load, memory float64
		go func() {
			defer cancel()
			time.Sleep(5 * time.Second)
			load, memory = busy(10), s.memory()
		}()
		h := s.all(ctx, paths, stamp, goesOn)
		tb.tell("200 browsers with "+what, "% of a processor", series{load})
		if driven > 0 { // what the next ones take was taken before
			tb.tell("  what one adds", "kB", series{(memory - driven) / watchers}.in(1e3))
			driven = 0
		}
		tb.tell("  messages to all", "messages/s", series{float64(h.n) / 15})
		tb.tell("  sent to all", "MB/s", series{float64(h.bytes) / 15}.in(1e6))
		if len(h.late) > 0 {
			tb.tellLate("  last event to browser", h.late)
		}
	}
	var views []string
	for _, id := range ids[:watchers] {
		views = append(views, "/runs/"+id+"/view")
	}
	look("a run's page each", views, "updated")
	look("the page of the same run", slices.Repeat(views[:1], watchers), "updated")
	look("the list of runs", slices.Repeat([]string{"/runs?limit=50&" + url.Values{"status": {"running"}, "scores": {"1"}}.Encode()}, watchers), "")
}

// A run of 10,000 iterations and 100,000 events whose page is opened.
func longRunOpened(t *testing.T, tb *table) {
	dir := newFolder(t)
	write(t, dir, "loop.yaml", climbing("long", 10_000, "0s"))
	runCommand(t, dir, "sqlite:runs.db")
	s := serveFolder(t, dir)
	var list struct{ Runs []struct{ Run string } }
	res, err := s.client.Get(s.url + "/runs")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil || len(list.Runs) != 1 {
		t.Fatal(err, list)
	}
	path := "/runs/" + list.Runs[0].Run
	alone, before := s.memory(), s.cpu()
	first, _, _ := s.timed(path + "/view")
	tb.tell("100,000 events: the page's head, opened first", "ms to first byte", series{first}.in(ms))
	tb.tell("  the server's part", "CPU ms", series{s.cpu() - before}.in(ms))
	for _, one := range []struct{ what, path string }{
		{"the head again", "/view"}, {"100 iterations at its end", "/view/iterations?loop=long&from=9901&limit=100"},
		{"a step at its end", "/view/step?address=long[9999]/say"}, {"50 events at its end", "/events?before=100000&limit=50"},
		{"all iterations' scores", "/scores"},
	} {
		var firsts, sizes series
		for range 9 {
			first, _, size := s.timed(path + one.path)
			firsts, sizes = append(firsts, first), append(sizes, float64(size))
		}
		tb.tell("  "+one.what, "ms to first byte", firsts.in(ms))
		tb.tell("    its size", "kB", sizes.in(1e3))
	}
	tb.tell("  what it adds to the server's memory", "MB", series{s.memory() - alone}.in(mb))
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
