// SPDX-License-Identifier: Apache-2.0

//go:build unix

package command

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"
	"unicode"
	"unicode/utf8"

	xterm "github.com/charmbracelet/x/term"
	"github.com/creack/pty"
)

// hostile is what a model, a program or a server may say to somebody's terminal:
// colors, a title, eight-bit commands, turned directions.
const hostile = "HOSTILE\x1b[31m\x1b]0;t\a\u009b31m\u0085\u202ecod.exe\u2066\u200f\u061c\x7f\x08\x0b\r"

// hostileYAML is hostile between double quotes in YAML, and in JSON.
const hostileYAML = `HOSTILE\u001b[31m\u001b]0;t\u0007\u009b31m\u0085\u202ecod.exe\u2066\u200f\u061c\u007f\u0008\u000b\u000d`

// hostileLoop says it in each way that a run can.
const hostileLoop = `
name: loud
query: go
goal: "goal EVIL"
max_iterations: 3
quality_gate: 3
state: {k: "state EVIL", s: 1}
score: {key: s}
on_error: skip_step
sub_agents:
  - {name: write, text: "text EVIL {{user_input}}", output_key: draft}
  - {name: say, command: [cat, evil.txt], output_key: said}
  - {name: breaks, command: [sh, -c, "cat evil.txt >&2; exit 3"]}
  - {name: count, set: {s: "state.s + 1", m: '{"key EVIL": "value EVIL"}'}}
  - name: model
    model: scripted/answers.yaml
    instructions: "do EVIL"
    tools: [exit_loop]
    on_error: skip_step
`

// hostileAnswers are a model's, with words of its own for why it leaves.
const hostileAnswers = `
answers:
  - text: "answer EVIL"
  - error: {status: 400, message: "refused EVIL"}
  - calls: [{name: exit_loop, args: {reason: "enough EVIL"}}]
  - text: "answer EVIL"
`

// hostileAsk asks a person.
const hostileAsk = `
name: asking
type: sequential
sub_agents:
  - {name: ask, question: "may I EVIL", ask: answer, options: ["a EVIL", "b"], deadline: 100h, default: "a EVIL"}
  - {name: say, text: "said EVIL"}
`

// hostileFails ends with an error, and hostileWrong with problems before it runs.
const (
	hostileFails = `
name: fails
type: sequential
sub_agents: [{name: breaks, command: [sh, -c, "cat evil.txt >&2; exit 3"]}]
`
	hostileWrong = `
name: wrong
"field EVIL": 1
order: ["a EVIL"]
sub_agents: [{name: a, text: "{{nothing EVIL}}"}, {name: b, set: {x: "bad EVIL("}}]
`
	hostileEvo = `{"agents": [{"name": "loud", "type": "loop", "description": "about EVIL", "instruction": "line EVIL\nmore",
 "config": {"sub_agents": [], "max_iterations": 2, "EVIL": 1}}, {"name": "x", "type": "llm", "model": "openai/m", "instruction": "EVIL"}]}`
	hostileADK = `name: x
agent_class: LlmAgent
model: gemini-2.0-flash
instruction: "a EVIL"
"field EVIL": 1
`
)

// T6: nothing that a definition, a model, a program or a file says can command the
// terminal of whoever runs, looks at or takes over a run, with any command.
func TestNothingCommandsTheTerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	evilName := "file\x1b[31m\u009b31m\u202e.yaml"
	for name, text := range map[string]string{
		"loud.yaml": hostileLoop, "answers.yaml": hostileAnswers, "ask.yaml": hostileAsk, "fails.yaml": hostileFails, "wrong.yaml": hostileWrong,
		"evo.json": hostileEvo, "adk.yaml": hostileADK, evilName: hostileLoop, "w" + evilName: hostileWrong,
		"needs" + evilName: "# yaml-language-server: $schema=not-there.json\nname: needs\ntype: sequential\nsub_agents: [{name: a, func: gone}]\n",
	} {
		write(t, name, strings.ReplaceAll(text, "EVIL", hostileYAML))
	}
	write(t, "evil.txt", hostile)
	write(t, evilName+".jsonl", "{\"type\":\"run\"}\n")
	onTerminal(t, strings.Fields("run loud.yaml --progress quiet --session r0 --record whole.jsonl"))
	whole, err := os.ReadFile("whole.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "cut"+evilName, string(whole[:len(whole)-9]))
	var raw []string // of runs; those that come first are the most told of
	for _, tt := range []struct {
		args string // words; FILE is a file with a bad name, EVIL a bad word
		says string // a part of what has to be there, or nothing was tested
	}{
		{"run loud.yaml in_EVIL --progress plain --session r1 --record rec.jsonl", "HOSTILE"},
		{"run loud.yaml in_EVIL --progress json --session r2", "HOSTILE"},
		{"run loud.yaml in_EVIL --json --session r3", "HOSTILE"},
		{"run loud.yaml in_EVIL --progress quiet --session r4", "HOSTILE"},
		{"run FILE x --progress plain --session r5", "HOSTILE"},
		{"run fails.yaml --progress plain --session f1", "HOSTILE"},
		{"run fails.yaml --progress json --session f2", "HOSTILE"},
		{"run fails.yaml --progress quiet --session f3", "HOSTILE"},
		{"run ask.yaml --progress plain --session q1", "HOSTILE"},
		{"run ask.yaml --progress json --session q2", "HOSTILE"},
		{"run ask.yaml --progress quiet --session q3", ""},
		{"run loud.yaml --session EVIL", "HOSTILE"},
		{"run wrong.yaml", "HOSTILE"},
		{"run EVIL", "HOSTILE"},
		{"EVIL", "HOSTILE"},
		{"runs --EVIL", "HOSTILE"},
		{"runs --status EVIL", "HOSTILE"},
		{"runs --store EVIL", "HOSTILE"},
		{"runs", "r1"},
		{"runs --json", "HOSTILE"},
		{"show r1", "HOSTILE"},
		{"show r1 --json", "HOSTILE"},
		{"show r1 --state", "HOSTILE"},
		{"show r1 --iteration 1", "HOSTILE"},
		{"show r1 --diff 1..2", ""},
		{"show rec.jsonl", "HOSTILE"},
		{"show f1", "HOSTILE"},
		{"show q1", "HOSTILE"},
		{"show q1 --json", "HOSTILE"},
		{"show EVIL", "HOSTILE"},
		{"events r1", "HOSTILE"},
		{"events r1 --json", "HOSTILE"},
		{"events r1 --errors", "HOSTILE"},
		{"events q1", "HOSTILE"},
		{"watch r1 --progress plain", "HOSTILE"},
		{"watch r1 --progress json", "HOSTILE"},
		{"watch r1 --progress tty", "HOSTILE"},
		{"watch f1 --progress plain", "HOSTILE"},
		{"watch q1 --progress plain", "HOSTILE"},
		{"watch q1 --progress json", "HOSTILE"},
		{"check loud.yaml", "loud"},
		{"check loud.yaml --json", "loud"},
		{"check ask.yaml", "ask"},
		{"check wrong.yaml", "HOSTILE"},
		{"check wrong.yaml --json", "HOSTILE"},
		{"check FILE", "file"},
		{"validate loud.yaml", "loud"},
		{"validate wrong.yaml", "HOSTILE"},
		{"validate FILE", "file"},
		{"validate wFILE", "HOSTILE"},
		{"validate evo.json", ""},
		{"graph loud.yaml", "loud"},
		{"graph loud.yaml --format mermaid", "loud"},
		{"rehearse loud.yaml", "loud"},
		{"rehearse loud.yaml --json", "loud"},
		{"answer q1", "HOSTILE"},
		{"answer q1 EVIL", "HOSTILE"},
		{"answer q1 --question EVIL b", "HOSTILE"},
		{"resolve q1 --result EVIL", "q1"},
		{"resume q1 --progress plain", "HOSTILE"},
		{"fork r1 --session r9", ""},
		{"verify r1", "loud"},
		{"verify r1 --json", "loud"},
		{"verify rec.jsonl", "loud"},
		{"backtest rec.jsonl --set plan.max_iterations=1", ""},
		{"backtest rec.jsonl --set plan.max_iterations=1 --json", "loud"},
		{"backtest rec.jsonl --set EVIL=1", "HOSTILE"},
		{"export r1", "HOSTILE"},
		{"export r1 --audit", "HOSTILE"},
		{"export r1 -o out.jsonl", "out.jsonl"},
		{"import out.jsonl --as r10", "r10"},
		{"export r1 -o FILEx.jsonl", "file"},
		{"import FILEx.jsonl --as r11", "file"},
		{"show FILEx.jsonl", "HOSTILE"},
		{"verify FILEx.jsonl", "loud"},
		{"verify FILE.jsonl", "file"},
		{"show cutFILE", "file"},
		{"check needsFILE", "file"},
		{"validate needsFILE", "file"},
		{"graph FILE", "loud"},
		{"rehearse FILE", "loud"},
		{"import out.jsonl --as EVIL", "HOSTILE"},
		{"import FILE.jsonl --as x", "file"},
		{"verify out.jsonl", "loud"},
		{"import adk.yaml", "HOSTILE"},
		{"import adk.yaml --json", "HOSTILE"},
		{"import evo.json", "HOSTILE"},
		{"import evo.json --json", "HOSTILE"},
		{"export loud.yaml --to adk", "HOSTILE"},
		{"export loud.yaml --to adk --json", "HOSTILE"},
		{"doctor loud.yaml", "loud"},
		{"doctor loud.yaml --json", "loud"},
		{"doctor wrong.yaml", "HOSTILE"},
		{"doctor FILE", "file"},
		{"help EVIL", "HOSTILE"},
		{"completion EVIL", "HOSTILE"},
	} {
		args := strings.Fields(tt.args)
		for i, a := range args {
			a = strings.ReplaceAll(a, "EVIL", hostile)
			args[i] = strings.ReplaceAll(a, "FILE", evilName)
		}
		out := onTerminal(t, args)
		if !strings.Contains(out, tt.says) {
			t.Errorf("refrain %s does not say %q, so that this tests nothing:\n%.3000s", tt.args, tt.says, out)
		}
		if args[0] == "watch" && strings.HasSuffix(tt.args, "tty") {
			continue // its own commands are told apart where the view is tested
		}
		for n, line := range strings.Split(out, "\n") {
			if r, found := command(line); found {
				raw = append(raw, tt.args)
				t.Errorf("refrain %s: %U came through in line %d: %.300q", tt.args, r, n+1, line)
				break
			}
		}
	}
	if len(raw) > 0 {
		t.Logf("%d commands: %s", len(raw), strings.Join(raw, "; "))
	}
}

// onTerminal is what somebody gets to see whose terminal is both outputs of a
// command, as it is sent there.
func onTerminal(t *testing.T, args []string) string {
	t.Helper()
	far, tty, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer far.Close()
	if err := pty.Setsize(far, &pty.Winsize{Rows: 50, Cols: 400}); err != nil {
		t.Fatal(err)
	}
	if _, err := xterm.MakeRaw(tty.Fd()); err != nil { // else it makes \r\n of \n
		t.Fatal(err)
	}
	var out bytes.Buffer
	var reading sync.WaitGroup
	reading.Go(func() {
		b := make([]byte, 1<<14)
		for {
			n, err := far.Read(b)
			out.Write(b[:n])
			if err != nil {
				return
			}
		}
	})
	run(t.Context(), nil, args, stateOnly, strings.NewReader(""), tty, tty)
	tty.Close()
	reading.Wait()
	return out.String()
}

// command is the first character of a line that has no business in a terminal.
func command(line string) (rune, bool) {
	for i, r := range line {
		if r == utf8.RuneError && !strings.HasPrefix(line[i:], "\ufffd") {
			return rune(line[i]), true // eight bits are a command where there is no UTF-8
		}
		if r != '\t' && unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Bidi_Control, r) {
			return r, true
		}
	}
	return 0, false
}
