// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/refrain-dev/refrain/command"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"refrain":          func() { os.Exit(command.Main()) },
		"refrain-temporal": main,
		"clocked-server":   serveClocked,
	})
}

// TestScripts runs testdata/script with a real Temporal server and a PostgreSQL: each script with a
// database and a task queue of its own. They share a namespace, so no two may give a run the same ID.
func TestScripts(t *testing.T) {
	address, namespace := temporalServer(t)
	dsn := postgresServer(t)
	c, err := client.Dial(client.Options{HostPort: address, Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	late := time.Now().Add(8 * time.Minute) // one that hangs says so early
	if all, is := t.Deadline(); is && all.Before(late) {
		late = all
	}
	var scripts atomic.Int64
	testscript.Run(t, testscript.Params{
		Deadline:            late,
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			name := fmt.Sprintf("script%d", scripts.Add(1))
			db, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				return err
			}
			defer db.Close(t.Context())
			if _, err := db.Exec(t.Context(), "create database "+name); err != nil {
				return err
			}
			e.Setenv("REFRAIN_STORE", "postgres:"+strings.Replace(dsn, "dbname=postgres", "dbname="+name, 1))
			e.Setenv("TEMPORAL", address)
			e.Setenv("TEMPORAL_NAMESPACE", namespace)
			e.Setenv("QUEUE", name)
			ears := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { // writes down what it hears
				f, err := os.OpenFile(filepath.Join(e.WorkDir, "heard"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
				if err == nil {
					_, err = io.Copy(f, r.Body)
					err = errors.Join(err, f.Close())
				}
				if err != nil {
					t.Error(err)
				}
			}))
			e.Defer(ears.Close)
			e.Setenv("EARS", ears.URL)
			e.Setenv("GORACE", "atexit_sleep_ms=0") // no second's sleep at the end of each command
			e.Defer(func() {
				if script, is := e.T().(testing.TB); is && script.Failed() {
					describe(script, c, name)
				}
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"await": await,
			"api":   api,
			"ended": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(c.GetWorkflow(t.Context(), args[0], "").Get(t.Context(), nil))
			},
			"terminate": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Check(c.TerminateWorkflow(t.Context(), args[0], "", "a test"))
			},
		},
	})
}

// describe logs how the workflows of a task queue stand, and who polls it.
func describe(t testing.TB, c client.Client, queue string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, kind := range []enums.TaskQueueType{enums.TASK_QUEUE_TYPE_WORKFLOW, enums.TASK_QUEUE_TYPE_ACTIVITY} {
		got, err := c.DescribeTaskQueue(ctx, queue, kind)
		t.Logf("%s %s: %v %v", queue, kind, got, err)
	}
	all, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Query: "TaskQueue = '" + queue + "'"})
	if err != nil {
		t.Log(err)
	}
	for _, one := range all.GetExecutions() {
		got, err := c.DescribeWorkflowExecution(ctx, one.GetExecution().GetWorkflowId(), one.GetExecution().GetRunId())
		t.Logf("%v %v", got, err)
		events := c.GetWorkflowHistory(ctx, one.GetExecution().GetWorkflowId(), one.GetExecution().GetRunId(), false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for events.HasNext() {
			ev, err := events.Next()
			if err != nil {
				t.Log(err)
				return
			}
			t.Log(ev)
		}
	}
}

// await waits for a file.
func await(ts *testscript.TestScript, _ bool, args []string) {
	for range 3000 {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%s does not come", args[0])
}

// api sends a request to the server that writes serve.log, and prints the answer; with a regular expression it repeats the request until the
// answer matches: api METHOD PATH BODY [REGEXP]. ! wants a refusal.
func api(ts *testscript.TestScript, neg bool, args []string) {
	var url, got string
	for range 3000 {
		text, _ := os.ReadFile(ts.MkAbs("serve.log"))
		if m := regexp.MustCompile(`refrain serves (http://\S+)\n`).FindSubmatch(text); m != nil {
			url = string(m[1])
			req, err := http.NewRequest(args[0], url+args[1], strings.NewReader(args[2]))
			ts.Check(err)
			req.Header.Set("Content-Type", "application/json")
			resp, err := http.DefaultClient.Do(req)
			ts.Check(err)
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			ts.Check(err)
			got = string(body)
			if len(args) == 4 && !regexp.MustCompile(args[3]).MatchString(got) {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			if refused := resp.StatusCode >= 300; refused != neg {
				ts.Fatalf("%s %s: %s %s", args[0], args[1], resp.Status, got)
			}
			_, err = io.WriteString(ts.Stdout(), got)
			ts.Check(err)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	ts.Fatalf("%v does not come from %q: %s", args, url, got)
}

// temporalServer starts the server that REFRAIN_TEMPORAL_SERVER names; the test is left out without one.
func temporalServer(t *testing.T) (address, namespace string) {
	t.Helper()
	program := os.Getenv("REFRAIN_TEMPORAL_SERVER")
	if program == "" {
		t.Skip("REFRAIN_TEMPORAL_SERVER does not name a server; .ci/temporal builds one")
	}
	cmd := exec.Command(program)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	if _, err := fmt.Fscan(out, &address, &namespace); err != nil {
		t.Fatalf("the server does not start: %v", err)
	}
	return address, namespace
}

// postgresServer starts a PostgreSQL. Where it cannot be had the test is left out, except in CI.
func postgresServer(t *testing.T) (dsn string) {
	t.Helper()
	tmp, err := os.MkdirTemp("/tmp", "rpg") // a short path, of which the user of the server may use each part
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(tmp) })
	if err := os.Chmod(tmp, 0o755); err != nil {
		t.Fatal(err)
	}
	const script = "../../../.ci/postgres"
	dir := filepath.Join(tmp, "c")
	cmd := exec.Command(script, "start", dir, strconv.Itoa(os.Getpid()))
	said := new(strings.Builder)
	cmd.Stderr = said
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 3 && os.Getenv("REFRAIN_CI") == "" {
		t.Skip(said)
	}
	if err != nil {
		t.Fatalf("start PostgreSQL: %v\n%s", err, said)
	}
	t.Cleanup(func() { _ = exec.Command(script, "stop", dir).Run() })
	return strings.TrimSpace(string(out))
}
