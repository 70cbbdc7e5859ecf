// SPDX-License-Identifier: Apache-2.0

package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/supervisor"
)

// Made-up definitions come to their recorded end again. Their commands print their process ID, so one that runs again shows; the
// script of their model is gone. Their branches have no loops, texts and tools, and read nothing of
// each other: what these say has no fixed place among what the other branches say.
func TestRandomDefinitions(t *testing.T) {
	for seed := range uint64(longtest.N(20, 200)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := t.TempDir()
			makeUp(t, dir, seed)
			file := filepath.Join(dir, "run.jsonl")
			record(t, dir, file, nil)
			if err := os.Remove(filepath.Join(dir, "script.yaml")); err != nil {
				t.Fatal(err)
			}
			if text, same := play(t, file); !same {
				def, _ := os.ReadFile(filepath.Join(dir, "loop.yaml"))
				t.Errorf("%s\n%s", text, def)
			}
		})
	}
}

// makeUp writes a definition and the script of its model into a folder.
func makeUp(t *testing.T, dir string, seed uint64) {
	t.Helper()
	d := &dice{Rand: rand.New(rand.NewPCG(seed, 1))}
	root := d.loop(3)
	root["sub_agents"] = append(root["sub_agents"].([]fields), d.llm(true))
	root["model"], root["state"], root["max_model_calls"] = "scripted/script.yaml", d.state(), 60
	write(t, filepath.Join(dir, "loop.yaml"), root)
	write(t, filepath.Join(dir, "script.yaml"), map[string]any{"answers": d.answers})
}

func write(t *testing.T, file string, v any) {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// record runs the definition in a folder with a state, and writes the run to a file.
func record(t *testing.T, dir, file string, state map[string]any) {
	t.Helper()
	p := &program.Program{Dir: dir, Root: dir}
	def, err := p.Read(filepath.Join(dir, "loop.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	started, err := p.Started(def)
	if err != nil {
		t.Fatal(err)
	}
	svc := session.InMemoryService()
	sup, err := supervisor.New(supervisor.Config{Service: svc, AppName: "refrain", UserID: "user",
		Build: program.Rebuild(program.Env{Report: func(error) {}})})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := sup.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	}()
	run, err := sup.Start(t.Context(), supervisor.Request{State: state, Started: started})
	if err != nil {
		t.Fatal(err)
	}
	end, err := run.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s %s", end.Run.Status, end.Run.Error)
	log, err := runlog.Read(t.Context(), svc, lease.Key{AppName: "refrain", UserID: "user", SessionID: run.ID()})
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := log.Export(&text, runlog.ExportOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

type fields = map[string]any

// dice makes up definitions.
type dice struct {
	*rand.Rand
	names    []string
	answers  []fields // of the model
	branches int      // parallel agents around
}

func (d *dice) odds(n int) bool { return d.IntN(n) == 0 }

func (d *dice) name(kind string) string {
	d.names = append(d.names, fmt.Sprintf("%s%d", kind, len(d.names)))
	return d.names[len(d.names)-1]
}

// state has a value of each key, so that no template fails.
func (d *dice) state() fields {
	all := fields{"n": 0}
	for _, name := range d.names {
		all[name] = "0"
	}
	return all
}

// loop makes a loop with a score, most times.
func (d *dice) loop(depth int) fields {
	a := fields{"name": d.name("loop"), "type": "loop", "max_iterations": 1 + d.IntN(4)}
	steps := d.steps(depth, true)
	if !d.odds(4) {
		s := d.command(true)
		score := fields{"key": s["output_key"], "target": 9, "patience": 1 + d.IntN(3), "min_delta": d.IntN(2)}
		steps, a["score"] = append(steps, s), score
		switch d.IntN(3) {
		case 0:
			a["on_regression"] = "rollback"
		case 1:
			a["result"] = "best"
		}
	}
	if d.odds(4) {
		a["stop_when"] = "iteration >= 2"
	}
	if d.odds(3) {
		a["max_consecutive_failures"] = 2
	}
	a["sub_agents"] = steps
	return a
}

func (d *dice) steps(depth int, loop bool) (all []fields) {
	for range 1 + d.IntN(3) {
		all = append(all, d.step(depth, loop))
	}
	return all
}

func (d *dice) step(depth int, loop bool) fields {
	n := 9
	if depth == 0 {
		n = 5
	}
	switch d.IntN(n) {
	case 0:
		return d.command(loop)
	case 1:
		if loop { // branches would race for n
			return fields{"name": d.name("set"), "set": fields{"n": "state.n + 1"}}
		}
		return d.command(loop)
	case 2:
		if d.branches > 0 {
			return d.command(loop)
		}
		name := d.name("text")
		return fields{"name": name, "text": "It is " + d.read(), "output_key": name}
	case 3, 4:
		return d.llm(loop)
	case 5, 6:
		if d.branches > 0 { // what a loop says itself may stand before or after what the other branches say
			return d.llm(loop)
		}
		return d.loop(depth - 1)
	case 7:
		return fields{"name": d.name("seq"), "type": "sequential", "sub_agents": d.steps(depth-1, false)}
	}
	d.branches++
	defer func() { d.branches-- }()
	a := fields{"name": d.name("par"), "type": "parallel", "sub_agents": append(d.steps(depth-1, false), d.llm(false))}
	if d.odds(2) {
		a["max_concurrency"] = 2
	}
	return a
}

// read is text that names values of the state.
func (d *dice) read() string {
	if d.branches > 0 { // branches that read what others write differ from run to run
		return "so."
	}
	var b strings.Builder
	for range d.IntN(3) {
		if len(d.names) > 0 {
			fmt.Fprintf(&b, "{{%s}} ", d.names[d.IntN(len(d.names))])
		}
	}
	return b.String() + "so."
}

// command makes a command whose output is another one each time, and which fails now and then.
func (d *dice) command(loop bool) fields {
	name := d.name("cmd")
	a := fields{"name": name, "output_key": name, "command": []string{"sh", "-c", "printf $(($$ % 10))"}}
	if d.odds(3) {
		a["command"] = []string{"sh", "-c", "printf $(($$ % 10)); exit $(($$ % 2))"}
		a["on_error"] = d.onError(loop)
		if loop && d.odds(2) {
			a["retry"] = fields{"attempts": 2, "backoff": "1ms"}
		}
	}
	return a
}

func (d *dice) onError(loop bool) string {
	if !loop {
		return "skip_step"
	}
	return []string{"skip_step", "next_iteration", "stop"}[d.IntN(3)]
}

// llm makes an agent that asks a model, with its answers.
func (d *dice) llm(loop bool) fields {
	name := d.name("llm")
	a := fields{"name": name, "instructions": "Say: " + d.read(), "output_key": name, "request_retry": fields{"attempts": 2, "backoff": "1ms"},
		"context": []any{"full", "none", fields{"last": 2}}[d.IntN(3)]}
	answer := func(f fields) {
		f["agent"] = name
		if d.odds(3) {
			f["delay"] = fmt.Sprintf("%dms", d.IntN(8))
		}
		d.answers = append(d.answers, f)
	}
	if d.branches == 0 && d.odds(3) {
		a["tools"] = []fields{{"name": "pid_" + name, "description": "Tells it.", "command": []string{"sh", "-c", "echo $$"}}}
	}
	if loop && d.odds(3) {
		a["can_exit_loop"] = true
	}
	for i := range d.IntN(5) {
		switch k := d.IntN(6); {
		case k == 0 && a["tools"] != nil:
			call := fields{"name": "pid_" + name, "args": fields{"request": fmt.Sprint(i)}}
			answer(fields{"calls": []fields{call, call}[:1+d.IntN(2)]})
		case k == 1 && a["can_exit_loop"] != nil:
			answer(fields{"calls": []fields{{"name": "exit_loop", "args": fields{"reason": "good"}}}})
		case k == 2:
			answer(fields{"error": fields{"status": []int{400, 429, 500}[d.IntN(3)]}})
			a["on_error"] = d.onError(loop)
		case k == 3:
			answer(fields{"text": "With thought.", "thought": "Hm.", "usage": fields{"prompt": 10, "output": 2}})
		default:
			answer(fields{"text": fmt.Sprintf("%s says %d.", name, i)})
		}
	}
	answer(fields{"text": name + " is done.", "repeat": true})
	return a
}
