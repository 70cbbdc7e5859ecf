// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

const deploy = "../../../deploy/"

// composed is what the test takes from compose.yaml.
type composed struct {
	Services map[string]struct {
		Command     any
		Environment map[string]string
		Deploy      struct{ Replicas int }
	}
}

// trial is the cluster of compose.yaml: its commands and variables, with the addresses of this machine.
type trial struct {
	testing.TB
	composed
	swap *strings.Replacer
	dir  string
	logs string
	url  string
}

// start starts what a service is, under its log's name.
func (c *trial) start(service, log string) *os.Process {
	c.Helper()
	s := c.Services[service]
	list, _ := s.Command.([]any)
	var args []string
	for _, word := range list {
		args = append(args, c.swap.Replace(fmt.Sprint(word)))
	}
	cmd := exec.Command("refrain", args...) // the entry point of the image
	cmd.Dir = c.dir
	cmd.Env = c.env(service)
	out, err := os.Create(filepath.Join(c.logs, log))
	if err != nil {
		c.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	c.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(time.Minute):
			_ = cmd.Process.Kill()
			<-ended
		}
		if text, err := os.ReadFile(out.Name()); err == nil && c.Failed() {
			c.Logf("%s:\n%s", log, text)
		}
	})
	return cmd.Process
}

func (c *trial) env(service string) []string {
	env := append(os.Environ(), "HOME="+c.logs)
	for name, value := range c.Services[service].Environment {
		env = append(env, name+"="+c.swap.Replace(value))
	}
	return env
}

// ask sends a request to the server.
func (c *trial) ask(method, path string, body, v any) error {
	var in io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		in = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(c.Context(), method, c.url+path, in)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s %s %w", method, path, resp.Status, text, err)
	}
	if v, ok := v.(*string); ok {
		*v = string(text)
		return nil
	}
	return json.Unmarshal(text, v)
}

// until asks again until it is so, for as long as a busy machine may take.
func (c *trial) until(what string, so func() (bool, error)) {
	c.Helper()
	var err error
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var ok bool
		if ok, err = so(); ok {
			return
		}
	}
	c.Fatalf("%s does not come: %v", what, err)
}

type standing struct {
	Status   string
	DrivenBy string `json:"driven_by"`
	Waits    []struct{ ID, Text string }
}

func (c *trial) run(id string, is func(standing) bool) (st standing) {
	c.Helper()
	c.until("what is expected of run "+id, func() (bool, error) {
		st = standing{}
		err := c.ask("GET", "/api/v1/runs/"+id, nil, &st)
		return err == nil && is(st), fmt.Errorf("%+v, %w", st, err)
	})
	return st
}

const token = "the-token-of-the-test"

// What deploy/compose.yaml starts, as far as the images are this project's: two workers and the server,
// with a real Temporal server and a PostgreSQL. The worker that drives a run is killed; the other one
// goes on, and the run's question is answered over HTTP.
func TestCompose(t *testing.T) {
	address, namespace := temporalServer(t)
	dsn := postgresServer(t)
	c := &trial{TB: t, dir: t.TempDir(), logs: t.TempDir()}
	text, err := os.ReadFile(deploy + "compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &c.composed); err != nil {
		t.Fatal(err)
	}
	if text, err = os.ReadFile(deploy + "Dockerfile"); err != nil || !strings.Contains(string(text), "\nENTRYPOINT [\"refrain\"]\n") {
		t.Fatalf("the image does not start refrain: %v\n%s", err, text)
	}
	if text, err = os.ReadFile(deploy + "loops/ask.yaml"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "ask.yaml"), bytes.Replace(text, []byte("sleep ${SECONDS_OF_WORK:-5}"),
		[]byte("echo x >>../began; while [ ! -e ../go ]; do sleep 0.02; done"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.url = "http://" + free.Addr().String()
	store := "postgres:" + dsn
	c.swap = strings.NewReplacer(
		c.Services["serve"].Environment["REFRAIN_STORE"], store, "temporal:7233", address, "0.0.0.0:8080", free.Addr().String(),
		"0.0.0.0:9090", "127.0.0.1:0", "/loops", c.dir, c.Services["serve"].Environment["REFRAIN_TOKEN"], token)
	for _, name := range []string{"worker", "serve"} {
		if env := c.Services[name].Environment; env["TEMPORAL_NAMESPACE"] != namespace || env["REFRAIN_STORE"] == "" || env["TEMPORAL_ADDRESS"] == "" {
			t.Fatalf("%s has the variables %v", name, env)
		}
	}
	free.Close()
	c.start("serve", "serve")
	workers := make(map[int]*os.Process)
	for i := range c.Services["worker"].Deploy.Replicas {
		p := c.start("worker", fmt.Sprint("worker", i+1))
		workers[p.Pid] = p
	}
	if len(workers) != 2 {
		t.Fatalf("%d workers", len(workers))
	}
	c.until("the server", func() (bool, error) {
		var ok string
		err := c.ask("GET", "/readyz", nil, &ok)
		return err == nil, err
	})

	// As doc/cluster.md has it done in the container of serve.
	doc, err := os.ReadFile("../../../doc/cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	run := regexp.MustCompile(`(?m)^docker compose exec serve refrain (run .*)$`).FindSubmatch(doc)
	yes := regexp.MustCompile(`(?m)^curl .* -d '([^']*)' http://127\.0\.0\.1:8080(/api/v1/runs/RUN:answer)$`).FindSubmatch(doc)
	if run == nil || yes == nil {
		t.Fatal("doc/cluster.md has no command that runs, or none that answers")
	}
	cmd := exec.Command("refrain", append(strings.Fields(c.swap.Replace(string(run[1]))), "--heartbeat", "2s", "--session", "first")...)
	cmd.Dir, cmd.Env = c.dir, c.env("serve")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("refrain run: %v\n%s", err, out)
	}
	began := func() int {
		text, _ := os.ReadFile(filepath.Join(c.dir, "..", "began"))
		return bytes.Count(text, []byte("x"))
	}
	c.until("the step", func() (bool, error) { return began() == 1, nil })
	st := c.run("first", func(st standing) bool { return st.DrivenBy != "" })
	m := regexp.MustCompile(`\brefrain (\d+) on `).FindStringSubmatch(st.DrivenBy)
	if m == nil {
		t.Fatalf("the run is driven by %q", st.DrivenBy)
	}
	pid, _ := strconv.Atoi(m[1])
	if workers[pid] == nil {
		t.Fatalf("the run is driven by %q, which is no worker of %v", st.DrivenBy, workers)
	}
	if err := workers[pid].Kill(); err != nil {
		t.Fatal(err)
	}
	c.until("the step again, by the other worker", func() (bool, error) { return began() == 2, nil })
	if err := os.WriteFile(filepath.Join(c.dir, "..", "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	st = c.run("first", func(st standing) bool { return st.Status == "waiting" && len(st.Waits) == 1 })
	if st.Waits[0].Text != "Is 1 enough?" {
		t.Errorf("the run asks %q", st.Waits[0].Text)
	}
	var scraped string
	if err := c.ask("GET", "/metrics", nil, &scraped); err != nil || !strings.Contains(scraped, "\nrefrain_store_runs{status=\"waiting\"} 1\n") {
		t.Errorf("the metrics do not tell of the question: %v\n%s", err, scraped)
	}
	var answered any
	if err := c.ask("POST", strings.Replace(string(yes[2]), "RUN", "first", 1), json.RawMessage(yes[1]), &answered); err != nil {
		t.Fatal(err)
	}
	st = c.run("first", func(st standing) bool { return st.Status == "completed" })
	if n := began(); n != 2 {
		t.Errorf("the step ran %d times", n)
	}
}
