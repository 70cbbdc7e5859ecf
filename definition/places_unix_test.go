// SPDX-License-Identifier: Apache-2.0

//go:build unix

package definition_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/taskagent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/runner"
)

// attempt runs a definition in a folder and returns what it says, and why it fails.
func attempt(t *testing.T, text, root string, state map[string]any, answers ...scripted.Answer) (words string, err error) {
	t.Helper()
	d, err := definition.Parse("x.yaml", []byte(text), definition.Options{})
	if err != nil {
		return "", err
	}
	_, cfg := record(t, answers...)
	cfg.Root = root
	a, err := d.Build(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner.NewInMemory("test", a)
	if err != nil {
		t.Fatal(err)
	}
	begin, err := d.InitialState(nil)
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(begin, state)
	for ev, failed := range r.Run(t.Context(), "u", "s", genai.NewContentFromText("go", genai.RoleUser), agent.RunConfig{}, runner.WithStateDelta(begin)) {
		if failed != nil {
			return words, failed
		}
		if ev.Text() != "" {
			words = ev.Text()
		}
	}
	return words, nil
}

func quotedList(args []string) string {
	b, _ := json.Marshal(args)
	return string(b)
}

// attacks ran a text as code, or read a file of the machine, without unsafe, before text needed a declared shape. Each
// leaves the file "pwned", or prints it.
var attacks = []struct {
	args  []string
	more  string // fields of the step
	value string
}{
	{[]string{"choom", "-n", "0", "--", "sh", "-c", "{{x}}"}, "", "touch pwned"},
	{[]string{"tar", "cf", "o.tar", "{{x}}", "f"}, "", "--use-compress-program=touch pwned"},
	{[]string{"split", "{{x}}", "f"}, "", "--filter=touch pwned"},
	{[]string{"git", "grep", "{{x}}", "MIT"}, "", "--open-files-in-pager=touch pwned"},
	{[]string{"perl5.36-x86_64-linux-gnu", "-e", "{{x}}"}, "", `open F, ">pwned"`},
	{[]string{"perl", "-e", "{{x}}"}, "", `open F, ">pwned"`},
	{[]string{"curl", "-s", "-o", "pwned", "{{x}}"}, "", "file:///etc/hostname"},
	{[]string{"flock", "f", "-c", "{{x}}"}, "", "touch pwned"},
	{[]string{"vim", "-es", "-c", "{{x}}", "-c", "qa!"}, "", "!touch pwned"},
	{[]string{"sg", "root", "-c", "{{x}}"}, "", "touch pwned"},
	{[]string{"capsh", "--", "-c", "{{x}}"}, "", "touch pwned"},
	{[]string{"sort", "{{x}}", "f"}, "", "--output=pwned"},
	{[]string{"find", "f", "{{x}}", "pwned"}, "", "-fprint"},
	{[]string{"xargs", "-a", "f", "{{x}}", "pwned"}, "", "touch"},
	{[]string{"tar", "cf", "o.tar", "f"}, `env: {TAR_OPTIONS: "{{x}}"}`, "--checkpoint=1 --checkpoint-action=exec='touch pwned'"},
	{[]string{"git", "diff", "--no-index", "f", "g"}, `env: {GIT_EXTERNAL_DIFF: "{{x}}"}`, "touch pwned;"},
	{[]string{"bash", "script"}, `env: {BASH_ENV: "{{x}}"}`, "evil"},
	{[]string{"choom", "-n", "0", "--", "sh"}, `stdin: "{{x}}"`, "touch pwned"},
	{[]string{"sh"}, `stdin: "{{x}}"`, "touch pwned"},
	{[]string{"bash", "-s", "x"}, `stdin: "{{x}}"`, "touch pwned"},
	{[]string{"env", "A=b", "sh"}, `stdin: "{{x}}"`, "touch pwned"},
	{[]string{"xargs", "touch"}, `stdin: "{{x}}"`, "pwned"},
	{[]string{"perl5.36-x86_64-linux-gnu"}, `stdin: "{{x}}"`, `open F, ">pwned"`},
	{[]string{"awk", "-f", "/dev/stdin"}, `stdin: "{{x}}"`, `BEGIN {print >"pwned"}`},
}

// D4: what ran a model's text is refused by the check; where its shape is declared, the text fails the step before the program starts.
// With unsafe: true it runs, so the attack is one.
func TestAttacksAreRefused(t *testing.T) {
	ran := 0
	for _, tt := range attacks {
		t.Run(strings.Join(tt.args, " ")+tt.more, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range map[string]string{"f": "MIT\n", "g": "other\n", "script": "true\n", "evil": "touch pwned\n"} {
				if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if git, err := exec.LookPath("git"); err == nil {
				for _, args := range [][]string{{"init", "-q"}, {"add", "f"}} {
					cmd := exec.Command(git, args...)
					cmd.Dir = root
					if err := cmd.Run(); err != nil {
						t.Fatal(err)
					}
				}
			}
			pwned := func() bool {
				_, err := os.Stat(filepath.Join(root, "pwned"))
				return err == nil
			}
			step := "name: a\ncommand: " + quotedList(tt.args) + "\n" + tt.more + "\n"
			more := tt.more
			if !strings.Contains(more, "stdin:") {
				more = strings.TrimPrefix(more+", stdin: nothing", ", ") // else the call, as JSON
			}
			tool := fmt.Sprintf("name: a\ninstructions: hi\ntools:\n  - {command: %s, name: use, description: d, %s, parameters: {type: object, properties: {x: {type: string}}}}\n",
				quotedList(tt.args), more)
			value := map[string]any{"x": tt.value}
			for what, text := range map[string]string{"an input": step + "inputs: {x: hi}\n", "a key": step + "state: {x: hi}\n", "a tool": tool} {
				if _, err := definition.Parse("x.yaml", []byte(text), definition.Options{}); err == nil {
					t.Errorf("%s is accepted: %s", what, text)
				}
			}
			if _, err := exec.LookPath(tt.args[0]); err != nil {
				t.Skip("no ", tt.args[0])
			}
			if !strings.HasPrefix(tt.more, "stdin") {
				_, err := attempt(t, step+"state: {x: hi}\nshapes: {x: {pattern: '[a-z]{1,3}'}}\n", root, value)
				wrong, ok := errors.AsType[*taskagent.ValueError](err)
				code, isCode := errors.AsType[*taskagent.ShapeError](err)
				if (!ok || wrong.Name != "x" || !strings.Contains(err.Error(), "[a-z]{1,3}")) && (!isCode || !code.Code) {
					t.Errorf("with a shape: %v", err)
				}
				declared := strings.Replace(tool, "type: string", "type: string, enum: [hi]", 1)
				_, err = attempt(t, declared, root, nil, call("", "use", value), scripted.Answer{Text: "Done."})
				if err != nil {
					t.Errorf("a tool with a shape: %v", err)
				}
			}
			if pwned() {
				t.Fatal("it reached the program")
			}
			if _, err := attempt(t, step+"state: {x: hi}\nunsafe: true\n", root, value); !pwned() {
				t.Skipf("with unsafe it does nothing on this machine: %v", err)
			}
			ran++
		})
	}
	if ran < 8 {
		t.Errorf("only %d attacks are real on this machine", ran)
	}
}

// D4: thirty commands of everyday run as they are, without unsafe.
func TestHarmlessCommandsRun(t *testing.T) {
	const head = `
inputs: {text: "two words; $(id)", n: 3, level: {type: int, default: 6}, mode: {choices: [fast, -v], default: fast}, file: {type: file, default: sub/a.txt}, folder: {type: folder, default: sub}, exact: true, ratio: 0.5}
shapes: {word: {pattern: "[a-z]+"}, made.lines: {type: int}}
state: {word: abc, made: {lines: 2}}
`
	for _, tt := range []struct {
		args []string
		more string
		want string
	}{
		{[]string{"echo", "{{iteration}} of {{max_iterations}}"}, "", "1 of 1"},
		{[]string{"echo", "--first={{is_first_iteration}}"}, "", "--first=true"},
		{[]string{"tee", "out-{{iteration}}.txt"}, `stdin: "{{text}}"`, "two words; $(id)"},
		{[]string{"echo", "--x={{n}}"}, "", "--x=3"},
		{[]string{"echo", "{{ratio}}", "-{{n}}"}, "", "0.5 -3"},
		{[]string{"echo", "{{mode}}"}, "", "fast"},
		{[]string{"echo", "a{{word}}b"}, "", "aabcb"},
		{[]string{"echo", "{{made.lines}}"}, "", "2"},
		{[]string{"echo", "{{#exact}}--exact{{/exact}}"}, "", "--exact"},
		{[]string{"head", "-n", "{{made.lines}}"}, `stdin: "a\nb\nc\n"`, "a\nb"},
		{[]string{"head", "-c{{n}}"}, `stdin: "{{text}}"`, "two"},
		{[]string{"cut", "-c", "1-{{n}}"}, `stdin: "{{text}}"`, "two"},
		{[]string{"cat", "{{file}}"}, "", "content"},
		{[]string{"echo", "--file={{file}}"}, "", "--file=./sub/a.txt"},
		{[]string{"ls", "{{folder}}"}, "", "a.txt"},
		{[]string{"sh", "-c", `cat "$1"`, "sh", "{{file}}"}, "", "content"},
		{[]string{"cp", "{{file}}", "copy-{{n}}"}, "", ""},
		{[]string{"mkdir", "-p", "made/{{word}}"}, "", ""},
		{[]string{"basename", "{{file}}"}, "", "a.txt"},
		{[]string{"grep", "-c", "{{word}}"}, `stdin: "abc {{text}}"`, "1"},
		{[]string{"wc", "-l"}, `stdin: "a\nb\n{{n}}\n"`, "3"},
		{[]string{"sort", "-r"}, `stdin: "a\nb"`, "b\na"},
		{[]string{"tr", "a-z", "A-Z"}, `stdin: "{{text}}"`, "TWO WORDS; $(ID)"},
		{[]string{"sed", "s/two/three/"}, `stdin: "{{text}}"`, "three words; $(id)"},
		{[]string{"awk", "-v", "n={{n}}", "{print n * 2}"}, `stdin: "{{text}}"`, "6"},
		{[]string{"expr", "{{n}}", "+", "{{level}}"}, "", "9"},
		{[]string{"printf", "%05d", "{{n}}"}, "", "00003"},
		{[]string{"sh", "-c", `printf "<%s>" "$INPUT_TEXT"`}, `env: {INPUT_TEXT: "{{text}}"}`, "<two words; $(id)>"},
		{[]string{"sh", "-c", `echo "$LEVEL"`}, `env: {LEVEL: "{{level}}"}`, "6"},
		{[]string{"sh", "script.sh", "{{n}}", "{{word}}"}, `stdin: "{{text}}"`, "3 abc two words; $(id)"},
		{[]string{"env", "A={{n}}", "sh", "-c", `echo "$A"`}, "", "3"},
		{[]string{"nice", "-n", "{{n}}", "cat"}, `stdin: "{{user_input}}"`, "go"},
		{[]string{"dd", "bs={{n}}", "count={{iteration}}", "status=none"}, `stdin: "{{text}}"`, "two"},
		{[]string{"tar", "cf", "o-{{iteration}}.tar", "{{file}}"}, "", ""},
	} {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"sub/a.txt": "content\n", "script.sh": "echo \"$1 $2 $(cat)\"\n"} {
			if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		text := "name: l\nmax_iterations: 1" + head + "sub_agents:\n  - name: a\n    output_key: out\n    command: " + quotedList(tt.args) + "\n"
		if tt.more != "" {
			text += "    " + tt.more + "\n"
		}
		got, err := attempt(t, text+"  - {name: say, text: '{{out}}'}\n", root, nil)
		if err != nil || got != tt.want {
			t.Errorf("%q: %q, %v; want %q", tt.args, got, err, tt.want)
		}
	}
}

// A program may be one of declared choices, and of nothing else.
func TestProgramOfChoices(t *testing.T) {
	const step = "name: a\ncommand: [\"{{tool}}\", ok]\n"
	if got, err := attempt(t, step+"inputs: {tool: {choices: [echo, printf], default: printf}}\n", t.TempDir(), nil); got != "ok" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, in := range []string{"echo", "{type: file, default: echo}", "{pattern: '[a-z]+', default: echo}", "1"} {
		_, err := attempt(t, step+"inputs: {tool: "+in+"}\n", t.TempDir(), nil)
		if err == nil || !strings.Contains(err.Error(), "only declared choices may choose what runs") {
			t.Errorf("%s: %v", in, err)
		}
	}
	if got, err := attempt(t, step+"unsafe: true\ninputs: {tool: echo}\n", t.TempDir(), nil); got != "ok" || err != nil {
		t.Errorf("unsafe: %q, %v", got, err)
	}
}

// A12: in a tool a declared parameter is the argument of the call, in stdin, in the environment and, with a declared shape, in an
// argument; it hides a key of the state of the same name, also where the call leaves it out.
func TestParameterIsTheArgumentOfTheCall(t *testing.T) {
	const text = `name: a
instructions: Use it.
state: {text: from the state, n: 7, more: from the state, kept: of the state}
tools:
  - command: [sh, -c, 'printf "%s|%s|%s|%s|" "$1" "$2" "$INPUT_TEXT" "$INPUT_MORE"; cat', sh, "--n={{n}}", "{{opts.mode}}"]
    env: {INPUT_TEXT: "{{text}}", INPUT_MORE: "{{more}}{{kept}}"}
    stdin: "{{text}} {{opts.mode}}"
    name: use
    description: Uses it.
    parameters:
      type: object
      required: [text, n]
      properties:
        text: {type: string}
        n: {type: integer}
        more: {type: string}
        opts: {type: object, properties: {mode: {enum: [fast, slow]}}}
`
	rec, cfg := record(t,
		call("", "use", map[string]any{"text": "from $(the) call", "n": -3, "opts": map[string]any{"mode": "slow"}}),
		call("", "use", map[string]any{"text": "-x", "n": 1}), scripted.Answer{Text: "Done."})
	cfg.Root = t.TempDir()
	if words, _ := run(t, parse(t, text), cfg, nil); words != "Done." {
		t.Errorf("got %q", words)
	}
	for i, want := range []string{"--n=-3|slow|from $(the) call|of the state|from $(the) call slow", "--n=1||-x|of the state|-x "} {
		if got := answers(rec.requests[i+1])["use"].(map[string]any)["result"]; got != want {
			t.Errorf("call %d: %q, want %q", i+1, got, want)
		}
	}
	for arg, want := range map[string]string{"{{text}}": `parameters: {type: object, properties: {text: {enum: [a, b]}}}`, "{{kept}}": `shapes: {kept: `} {
		_, err := definition.Parse("x.yaml", []byte(strings.Replace(text, "--n={{n}}", arg, 1)), definition.Options{})
		if problems, ok := errors.AsType[definition.Problems](err); !ok || len(problems) != 1 || !strings.Contains(problems[0].Hint, want) {
			t.Errorf("%s: %v", arg, err)
		}
	}
}

// D4: a value is no part of code, whatever its shape: each of these ran "touch pwned" from a file's name, or used a folder of the model's.
func TestNoShapeMakesAValueCode(t *testing.T) {
	const evil = `a';touch pwned;'`
	for _, tt := range []struct{ args, shape, value string }{
		{`[sh, -c, "wc -c '{{x}}'"]`, "type: file", evil},
		{`[sh, -c, 'wc -c "{{x}}"']`, "type: file", `a";touch pwned;"`},
		{`[sh, -c, "wc -c {{x}}"]`, "type: file", "a;touch pwned"},
		{`[sh, "{{x}}"]`, "type: file", "f"},
		{`[python3, -c, "print(len('{{x}}'))"]`, "type: file", `a');open('pwned','w');('`},
		{`[awk, 'BEGIN {print "{{x}}"}']`, "type: file", `a"; system("touch pwned"); "`},
		{`[sed, 's/a/{{x}}/e', f]`, "type: file", "touch pwned"},
		{`[find, ., -name, f, -exec, sh, -c, "cat {{x}}", ";"]`, "type: file", "f;touch pwned"},
		{`[xargs, -a, f, sh, -c, "cat {{x}}"]`, "pattern: '[^-].*'", "f;touch pwned"},
		{`[env, -S, "cat {{x}}"]`, "pattern: '.+'", "f touch"},
		{`[git, -c, "alias.x=!cat {{x}}", x]`, "pattern: '.+'", "f;touch pwned"},
		{`[git, -C, "{{x}}", status]`, "type: folder", "theirs"},
		{`[git, -C, "{{x}}", status]`, "type: file", "theirs"},
		{`[git, status]` + "\ndir: '{{x}}'", "type: folder", "theirs"},
		{`[sh, -c, "git status"]` + "\ndir: '{{x}}'", "pattern: '[a-z]+'", "theirs"},
		{`[npm, install, "{{x}}"]`, "type: file", "left-pad"},
		{`[make, "F={{x}}"]`, "type: file", "$(shell touch pwned)"},
		{`[make, "F={{x}}"]`, "type: file", "f;touch pwned"},
		{`[perl, -ne, print, "{{x}}"]`, "type: file", "touch pwned|"},
		{`[perl, -ne, print, "{{x}}"]`, "type: file", " >pwned"},
		{`[make, "{{x}}"]`, "type: file", "CC=touch pwned;"},
		{`[vim, -es, "{{x}}"]`, "type: file", "+:silent !touch pwned"},
		{`[tar, tf, "{{x}}"]`, "type: file", "localhost:f"},
		{`[tar, cf, out, "{{x}}"]`, "type: file", "@f"},
		{`[head, "{{x}}"]`, "type: file", "f\nf"},
		{`[grep, "-f{{x}}", f]`, "type: file", "link/secret"},
		{`[grep, "--file={{x}}", f]`, "type: file", "link/secret"},
		{`[cat, "./{{x}}"]`, "type: file", "link/secret"},
	} {
		root, elsewhere := t.TempDir(), t.TempDir()
		set := "mkdir theirs && cd theirs && git init -q && git config core.fsmonitor 'touch ../pwned; touch pwned' && cd .. && printf 'f\\n' >f && " +
			"printf 'all: ; cat $(F)\\n' >Makefile && ln -s '" + elsewhere + "' link && echo f >link/secret"
		cmd := exec.Command("sh", "-c", set)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text := "name: a\ncommand: " + tt.args + "\nstate: {x: hi}\nshapes: {x: {" + tt.shape + "}}\n"
		got, err := attempt(t, text, root, map[string]any{"x": tt.value})
		if err == nil || strings.Contains(err.Error(), "exit status") {
			t.Errorf("%s with %q: %q, got error %v", tt.args, tt.value, got, err)
		}
		for _, name := range []string{"pwned", "theirs/pwned"} {
			if _, err := os.Stat(filepath.Join(root, name)); err == nil {
				t.Errorf("%s with %q ran it", tt.args, tt.value)
			}
		}
	}
}

// D4: what real shells do with hostile values of every shape, at the places that a definition allows: they get them as they are,
// and run nothing. A file of that name exists, so that only its text can stop it.
func TestShellsRunNoValue(t *testing.T) {
	pieces := []string{"a", "'", `"`, ";", "$(touch pwned)", "`touch pwned`", "|", "&", "\n", " ", "touch pwned", "../", "-", "=", ":",
		"+", "@", "~", "*", "#", "(", ")", "<f", ">pwned", `\`, "${IFS}"}
	random := rand.New(rand.NewPCG(35, 2))
	ran, refused := 0, 0
	for range 300 {
		var value strings.Builder
		for range 1 + random.IntN(5) {
			value.WriteString(pieces[random.IntN(len(pieces))])
		}
		root := t.TempDir()
		if err := os.WriteFile(filepath.Join(root, "s.sh"), []byte(`printf '%s' "$1" "$INPUT_X"`), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = os.WriteFile(filepath.Join(root, strings.ReplaceAll(value.String(), "/", "_")), nil, 0o600)
		shape := []string{"type: file", "type: folder", "pattern: '(?s).*'", "pattern: '[^-].*'", "pattern: '[a-z ;]+'"}[random.IntN(5)]
		command := []string{
			`[sh, -c, "cat '{{x}}'"]`, `[sh, -c, 'printf %s "$1" "$INPUT_X"', sh, "{{x}}"]`, `[sh, s.sh, "{{x}}"]`, `[sh, s.sh, "--x={{x}}"]`, `[env, "A={{x}}", sh, -c, 'printf %s "$A"']`,
			`["{{tool}}", -c, "cat {{x}}"]`, `[sh, "-c{{x}}"]`, `[nice, "{{x}}"]`, `[make, -s, -f, s.sh, "A={{x}}"]`,
		}[random.IntN(9)]
		text := "name: a\ncommand: " + command + "\nenv: {INPUT_X: '{{x}}'}\ninputs: {tool: {choices: [sh, bash], default: sh}}\nstate: {x: hi}\nshapes: {x: {" + shape + "}}\n"
		_, err := attempt(t, text, root, map[string]any{"x": strings.ReplaceAll(value.String(), "/", "_")})
		if _, failed := errors.AsType[*taskagent.ExitError](err); err == nil || failed {
			ran++
		} else {
			refused++
		}
		if _, err := os.Stat(filepath.Join(root, "pwned")); err == nil && value.String() != "pwned" {
			t.Fatalf("%s with %s and %q ran it", command, shape, value.String())
		}
	}
	if ran < 30 || refused < 30 {
		t.Errorf("%d ran, %d were refused", ran, refused)
	}
}

// D4: the names of files may have whatever no program reads as code, and programs get them with ./ before them.
func TestNamesOfFiles(t *testing.T) {
	for _, name := range []string{"a.b/c:d=e+f@g", ".x", "_", "(1) ä.txt", "./+x", "a=b:c", "-rf", "[id].tsx", "$id.tsx", "~x", "@f"} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := attempt(t, "name: a\ncommand: [cat, '{{x}}']\nstate: {x: hi}\nshapes: {x: {type: file}}\n", root, map[string]any{"x": name})
		if got != "content" || err != nil {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

// D4: {{call_id}} is a value that is built in only where a command finds out about a call. Elsewhere it is a key, and text of any content.
func TestKeyOfTheNameCallIDIsText(t *testing.T) {
	const text = `name: a
type: sequential
state: {call_id: none}
sub_agents:
  - name: b
    command: [sh, -c, "{{call_id}}"]
`
	if _, err := definition.Parse("x.yaml", []byte(text), definition.Options{}); err == nil ||
		!strings.Contains(err.Error(), "{{call_id}} is text of any content") {
		t.Errorf("got error %v", err)
	}
}
