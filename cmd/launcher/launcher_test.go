// SPDX-License-Identifier: Apache-2.0

//go:build unix

package launcher_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/refrain-dev/refrain/internal/testkit/programtest"
)

// moved is the program in testdata/moved, in a folder of its own.
type moved struct {
	*testing.T
	binary, dir string
	env         []string
}

func (m *moved) command(args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(m.Context(), 2*time.Minute)
	m.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, m.binary, args...)
	cmd.Dir, cmd.Env = m.dir, append(os.Environ(), m.env...)
	return cmd
}

// does runs the program with an input to its end, which has to have the exit code, and returns its outputs.
func (m *moved) does(code int, input string, args ...string) (stdout, stderr string) {
	m.Helper()
	cmd := m.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != code {
		m.Fatalf("%s: %v, want exit code %d\n%s%s", args, err, code, &out, &errs)
	}
	return out.String(), errs.String()
}

// has requires parts of a text.
func (m *moved) has(text string, parts ...string) {
	m.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			m.Errorf("%q is not in\n%s", part, text)
		}
	}
}

// done is what the agents have done, as they have written it down.
func (m *moved) done() string {
	text, _ := os.ReadFile(filepath.Join(m.dir, "done")) // nothing yet
	return strings.Join(strings.Fields(string(text)), " ")
}

// until reads lines up to one that the pattern fits, and returns its first submatch.
func (m *moved) until(lines *bufio.Scanner, pattern string) string {
	m.Helper()
	want, all := regexp.MustCompile(pattern), ""
	for lines.Scan() {
		all += lines.Text() + "\n"
		if found := want.FindStringSubmatch(lines.Text()); found != nil {
			return found[len(found)-1]
		}
	}
	m.Fatalf("the program ended before it wrote %s:\n%s", pattern, all)
	return ""
}

// A program that ends in launcher.Execute is a console and a web server, and answers every verb of the command.
func TestMovedProgram(t *testing.T) {
	binary := programtest.Build(t, "moved", "../..", "testdata/moved")
	in := func(t *testing.T, env ...string) *moved { return &moved{t, binary, t.TempDir(), env} }

	t.Run("console", func(t *testing.T) {
		m := in(t, "MOVED_STORE=runs.db")
		out, errs := m.does(0, "I am Ana\nwho am I\nremove the file\nmaybe\nyes\n")
		if want := "helper> Hello to you.\nhelper> You are Ana.\nhelper> It is gone.\n"; out != want {
			t.Errorf("the console wrote\n%s, want\n%s", out, want)
		}
		m.has(errs, "helper wants to call remove", "the answer is yes or no")
		if got := m.done(); got != "removed a.txt" {
			t.Errorf("done: %q", got)
		}
		out, _ = m.does(0, "", "runs")
		m.has(out, "helper  completed")
		out, _ = m.does(0, "", "show", "last")
		m.has(out, "helper  completed", "It is gone.")
		out, _ = m.does(0, "hello\n", "console", "-streaming_mode", "none")
		m.has(out, "helper> Hello to you.\n")
		out, _ = in(t, "MOVED_ROOT=refine").does(0, "go\n")
		if want := "writer> A draft.\ncritic> Good.\n"; out != want {
			t.Errorf("the console of a loop wrote\n%s, want\n%s", out, want)
		}
		out, _ = m.does(3, "", "run", "count_up", "Go.", "--session", "c1")
		m.has(out, "number 4")
		if _, err := os.Stat(filepath.Join(m.dir, ".refrain", "refrain.db")); err == nil {
			t.Error("the runs are in a store of the command, although the config has one")
		}
	})
	t.Run("a question that is left", func(t *testing.T) {
		m := in(t, "MOVED_STORE=runs.db")
		_, errs := m.does(0, "remove the file\n")
		m.has(errs, "the run waits for the answer")
		m.does(0, "", "answer", "last", "no")
		out, _ := m.does(0, "")
		m.has(out, "It is gone.") // what the script says after any answer
		if got := m.done(); got != "" {
			t.Errorf("the tool was called without consent: %q", got)
		}
	})
	t.Run("killed in a loop", func(t *testing.T) {
		m := in(t, "MOVED_STORE=runs.db", "MOVED_ROOT=count up")
		killed := m.command()
		killed.Env = append(killed.Env, "MOVED_HOLD=1")
		keys, _ := killed.StdinPipe()
		says, err := killed.StderrPipe()
		if err == nil {
			err = killed.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(keys, "go\n"); err != nil {
			t.Fatal(err)
		}
		m.until(bufio.NewScanner(says), "holding$")
		if err := killed.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = killed.Wait() // it was killed
		if got := m.done(); got != "step 1 step 2" {
			t.Fatalf("before the kill: %q", got)
		}
		out, errs := m.does(0, "")
		if out != "step> number 3\nstep> number 4\n" {
			t.Errorf("the next console wrote %q", out)
		}
		m.has(errs, "goes on", "Stopped: max_iterations after 4 iterations")
		if got := m.done(); got != "step 1 step 2 step 3 step 4" {
			t.Errorf("a step was done again: %q", got)
		}
		out, _ = m.does(0, "again\n")
		m.has(out, "number 1") // a new conversation: nothing was left
	})
	t.Run("Ctrl-C", func(t *testing.T) {
		m := in(t, "MOVED_STORE=runs.db", "MOVED_ROOT=count up")
		cmd := m.command()
		cmd.Env = append(cmd.Env, "MOVED_HOLD=1")
		keys, _ := cmd.StdinPipe()
		says, err := cmd.StderrPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(keys, "go\n")
		lines := bufio.NewScanner(says)
		m.until(lines, "holding$")
		_ = cmd.Process.Signal(os.Interrupt)
		m.until(lines, "^Pausing after")
		_ = cmd.Process.Signal(os.Interrupt)
		m.until(lines, "Resume with: moved resume")
		for lines.Scan() { // to its end
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("a console that a person has ended: %v", err)
		}
		out, _ := m.does(3, "", "resume", "last") // a limit has stopped it
		m.has(out, "number 4")
	})
	t.Run("without a store", func(t *testing.T) {
		m := in(t)
		m.does(0, "hello\n")
		out, _ := m.does(0, "", "show", "last")
		m.has(out, "helper  completed")
	})
	t.Run("in memory", func(t *testing.T) {
		m := in(t, "MOVED_STORE=memory")
		out, _ := m.does(0, "I am Ana\nwho am I\n")
		m.has(out, "You are Ana.")
		_, errs := m.does(2, "", "show", "last")
		m.has(errs, "keeps its runs in memory")
	})
	t.Run("arguments", func(t *testing.T) {
		m := in(t)
		out, _ := m.does(0, "", "help")
		m.has(out, "console  talk with the root agent", "web … api", "-path_prefix", "resume")
		_, errs := m.does(1, "", "console", "-streaming_mode", "loud")
		m.has(errs, `-streaming_mode "loud": use sse or none`)
		_, errs = m.does(1, "", "web")
		m.has(errs, "after web, name one or more services: webui, a2a, api")
		_, errs = m.does(1, "", "web", "api", "extra")
		m.has(errs, "unknown arguments: extra")
		_, errs = m.does(1, "", "console", "-otel_to_cloud")
		m.has(errs, "-otel_to_cloud is not available")
		_, errs = m.does(1, "", "web", "-h2c", "api")
		m.has(errs, "-h2c is not available")
		for _, flag := range []string{"api -webui_address=x", "api -trace_capacity=5", "a2a -a2a_agent_url=x", "webui -api_server_address=x"} {
			_, errs = m.does(1, "", append([]string{"web"}, strings.Fields(flag+" extra")...)...)
			m.has(errs, "unknown arguments: extra") // the flag is taken
		}
		for _, wrong := range []string{
			"console -shutdown-timeout -1s", "console -x", "web -port 70000 api", "web -idle-timeout -1s api", "web api api",
			"web api -path_prefix /a/../b", "web api -path_prefix /%zz", "web api -sse-write-timeout -1s",
		} {
			_, errs = m.does(1, "", strings.Fields(wrong)...)
			if m.has(errs, "run failed: "+strings.Fields(wrong)[0]+": "); strings.Contains(errs, "console: console:") {
				t.Errorf("%s: %s", wrong, errs)
			}
		}
		_, errs = m.does(1, "", "web", "-port", "0", "webui", "api", "-path_prefix", "/ui")
		m.has(errs, "webui: another launcher serves the same path; give another -path_prefix")
		out, _ = m.does(0, "", "console", "-h")
		m.has(out, "talk with the root agent", "-streaming_mode")
		out, _ = m.does(0, "", "web", "api", "-h")
		m.has(out, "-idle-timeout", "-path_prefix")
		_, errs = m.does(2, "", "shwo")
		m.has(errs, "did you mean show?")
	})
	t.Run("ten minutes", func(t *testing.T) { in(t, "MOVED_STORE=runs.db").tenMinutes() })
	t.Run("port in use", func(t *testing.T) {
		taken, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		m := in(t)
		_, errs := m.does(1, "", "web", "-port", strings.Split(taken.Addr().String(), ":")[1], "api")
		m.has(errs, "address already in use")
	})
	t.Run("plugin that does not close", func(t *testing.T) {
		m := in(t, "MOVED_PLUGIN=1")
		out, errs := m.does(1, "hello\n")
		m.has(out, "Hello to you.")
		m.has(errs, "the plugins have not closed after 100ms")
	})
	t.Run("two consoles", func(t *testing.T) {
		m := in(t, "MOVED_STORE=runs.db", "MOVED_ROOT=count up")
		first := m.command("run", "count_up", "go", "--session", "c1")
		first.Env = append(first.Env, "MOVED_HOLD=1")
		says, err := first.StderrPipe()
		if err == nil {
			err = first.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = first.Process.Kill()
			_ = first.Wait() // it was killed
		}()
		m.until(bufio.NewScanner(says), "holding$")
		_, errs := m.does(1, "go\n", "console", "-session", "c1")
		m.has(errs, "run c1 is driven by")
		out, _ := m.does(0, "go\n") // a conversation of its own
		m.has(out, "number 4")
	})
	t.Run("web", func(t *testing.T) { in(t, "MOVED_STORE=runs.db", "MOVED_GREETS=1").web() })
}

// tenMinutes runs the commands of doc/adk.md.
func (m *moved) tenMinutes() {
	text, err := os.ReadFile("../../doc/adk.md")
	if err != nil {
		m.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "## Ten minutes\n")
	part, _, _ = strings.Cut(part, "\n## ")
	var shown []string
	var killed *exec.Cmd
	for line := range strings.Lines(part) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "  #")
		words := strings.Fields(strings.ReplaceAll(strings.TrimSpace(line), `"`, ""))
		switch {
		case line == "kill -9 $!":
			_ = killed.Process.Kill()
			_ = killed.Wait()
		case len(words) == 0 || words[0] != "./agent":
		case words[len(words)-1] == "&":
			killed = m.command(words[1 : len(words)-1]...)
			killed.Env = append(killed.Env, "MOVED_HOLD=1")
			says, err := killed.StderrPipe()
			if err == nil {
				err = killed.Start()
			}
			if err != nil {
				m.Fatal(err)
			}
			m.until(bufio.NewScanner(says), "holding$")
		case words[1] == "resume":
			out, _ := m.does(3, "", words[1:]...) // a limit has stopped it
			shown = append(shown, out)
		default:
			out, _ := m.does(0, "", words[1:]...)
			shown = append(shown, out)
		}
	}
	if len(shown) != 2 || killed == nil {
		m.Fatalf("the document has the outputs %q", shown)
	}
	m.has(shown[0], "number 4")
	m.has(shown[1], "max_iterations")
	if got := m.done(); got != "step 1 step 2 step 3 step 4" {
		m.Errorf("done: %q", got)
	}
}

// web asks the web server, as clients of ADK do.
func (m *moved) web() {
	cmd := m.command("web", "-port", "0", "greet", "webui", "a2a", "api", "-path_prefix", "/adk")
	says, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		m.Fatal(err)
	}
	lines := bufio.NewScanner(says)
	where := m.until(lines, "^moved serves (http://.*)$")
	go func() { // it must not wait for a reader
		for lines.Scan() {
		}
	}()
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			m.Errorf("moved web: %v", err)
		}
	}()
	ask := func(method, path, body string, status int) string {
		m.Helper()
		req, err := http.NewRequestWithContext(m.Context(), method, where+path, strings.NewReader(body))
		if err != nil {
			m.Fatal(err)
		}
		switch {
		case method == "PUT":
			req.Header.Set("Content-Type", "application/yaml")
		case body != "":
			req.Header.Set("Content-Type", "application/json")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			m.Fatal(err)
		}
		text := readAll(m, resp)
		if resp.StatusCode != status {
			m.Fatalf("%s %s: %d, want %d\n%s", method, path, resp.StatusCode, status, text)
		}
		return text
	}
	m.has(ask("GET", "/adk/list-apps", "", 200), `["count_up","helper","refine"]`)
	ask("POST", "/adk/apps/helper/users/ana/sessions/s1", `{}`, 200)
	run := `{"appName":"helper","userId":"ana","sessionId":"s1","newMessage":{"role":"user","parts":[{"text":"TEXT"}]}}`
	say := func(text string) string { return strings.Replace(run, "TEXT", text, 1) }
	m.has(ask("POST", "/adk/run", say("I am Ana"), 200), `"Hello to you."`)
	m.has(ask("POST", "/adk/run_sse", say("who am I"), 200), `data: {`, `"You are Ana."`)
	m.has(ask("GET", "/adk/apps/helper/users/ana/sessions/s1", "", 200), `"who am I"`)
	ask("GET", "/adk/v1/runs", "", 404)
	ask("GET", "/api/list-apps", "", 404)
	m.has(ask("GET", "/api/v1/runs", "", 200), `"helper/ana/s1"`)
	m.has(ask("GET", "/", "", 200), "<html")
	m.has(ask("GET", "/a2a/v1/helper/.well-known/agent-card.json", "", 200), `"helper"`)
	m.agents(where)
	ask("PUT", "/api/v1/definitions/x", "name: x\ntext: Hm.\n", 403)
	m.has(ask("GET", "/greet", "", 200), "Here are count up and helper")
	out, _ := m.does(0, "", "show", "helper/ana/s1")
	m.has(out, "You are Ana.")
}

// readAll returns the body of a response.
func readAll(t testing.TB, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
