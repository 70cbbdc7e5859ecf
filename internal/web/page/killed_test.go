// SPDX-License-Identifier: Apache-2.0

//go:build unix

package webui_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// process is refrain serve in a process of its own.
type process struct {
	cmd *exec.Cmd
	url string
}

// command builds refrain.
func command(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "refrain")
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/refrain-dev/refrain/cmd/refrain").CombinedOutput(); err != nil {
		t.Fatalf("build refrain: %v\n%s", err, out)
	}
	return bin
}

// startServe starts refrain serve, and waits until it says where. A port that is still taken is asked
// for again.
func startServe(t *testing.T, bin, dir, addr string) *process {
	t.Helper()
	var said strings.Builder
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		cmd := exec.Command(bin, "serve", "--dir", dir, "--store", "sqlite:"+filepath.Join(dir, "runs.db"), "--addr", addr)
		out, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadString('\n')
			said.WriteString(line)
			if _, at, ok := strings.Cut(line, "refrain serves "); ok {
				go func() { _, _ = io.Copy(io.Discard, lines) }()
				return &process{cmd, strings.TrimSpace(at)}
			}
			if err != nil {
				break
			}
		}
		_ = cmd.Wait()
		if !strings.Contains(said.String(), "in use") {
			break
		}
	}
	t.Fatalf("refrain serve says %s", said.String())
	return nil
}

// G8, M16: the server is killed in mid-run with the page open. The page says so, comes back by itself
// when there is a server again, and shows the run going on; no event is missing or doubled.
func TestServerIsKilled(t *testing.T) {
	chrome(t) // before anything is built
	bin, dir := command(t), t.TempDir()
	file := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file("work.sh", "while [ ! -e go$N ] && [ -e work.sh ]; do sleep 0.02; done\n")
	file("jobs.yaml", `name: jobs
max_iterations: 5
state: {n: 0}
score: {key: n, target: 9.0}
sub_agents:
  - {name: count, set: {n: state.n + 1}}
  - name: work
    command: [sh, work.sh]
    env: {N: "{{n}}"}
  - {name: say, text: "done with {{n}}", output_key: said}
`)
	file("go1", "")
	one := startServe(t, bin, dir, "127.0.0.1:0")
	s := &site{url: one.url, dir: dir}
	id := s.start(t, "jobs")
	p := open(t, s)
	p.visit("/runs/" + id)
	p.sees("running")
	p.until("the second iteration", `!!document.querySelector('[data-key="jobs[2]/work"]')`)
	// What a browser gets of the log, over all its connections.
	p.js(`(() => { window.got = []; window.source = new EventSource('/api/v1/runs/` + id +
		`/events'); source.addEventListener('event', e => got.push(Number(e.lastEventId))); return true })()`)
	p.until("its events", `got.length > 3`)
	for _, gone := range []string{"2", "3"} { // twice
		if err := one.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = one.cmd.Wait()
		p.sees("The server cannot be reached.")
		p.sees("Iteration " + gone)
		file("go"+gone, "") // the step goes on without its server, or begins again
		one = startServe(t, bin, dir, strings.TrimPrefix(one.url, "http://"))
		p.seesNot("The server cannot be reached.")
		p.sees("running")
		p.until("the next iteration", fmt.Sprintf(`!!document.querySelector('[data-key="jobs[%c]/work"]')`, gone[0]+1))
	}
	file("go4", "")
	file("go5", "")
	p.sees("at a limit")
	p.sees("done with 5")
	for n := 1; n <= 5; n++ {
		p.until(fmt.Sprint("iteration ", n, " once"), fmt.Sprintf(`document.querySelectorAll('[data-key="jobs[%d]"]').length === 1`, n))
	}
	last, err := eval[int](p, `fetch('/api/v1/runs/`+id+`/events?before=999999&limit=1').then(r => r.json()).then(r => r.last_seq)`)
	if err != nil || last == 0 {
		t.Fatal(last, err)
	}
	p.until("the last event", fmt.Sprintf(`got.at(-1) === %d`, last))
	if got, err := eval[[]int](p, `got`); err != nil || len(got) != last {
		t.Errorf("%d events of %d: %v, %v", len(got), last, got, err)
	}
	p.until("each event once", `got.every((seq, i) => seq === i + 1)`)
}
