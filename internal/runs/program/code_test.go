// SPDX-License-Identifier: Apache-2.0

package program_test

import (
	"errors"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/program"
)

// A process takes over no run of another program whose Go code has the same names; a run without Go code it does.
func TestCodeOfAnotherProgram(t *testing.T) {
	code := func(name string) program.Code {
		newAgent := func(cfg agent.Config) (agent.Agent, error) { return agent.New(cfg) }
		return program.Code{Name: name, Agents: map[string]definition.NewAgent{"reviewer": newAgent}}
	}
	for _, tt := range []struct {
		name, by, here, text string
		refused              bool
	}{
		{"its own", "paint", "paint", "name: reviewer\ntype: func\nfunc: reviewer\n", false},
		{"of another", "paint", "draw", "name: reviewer\ntype: func\nfunc: reviewer\n", true},
		{"of another, without Go code", "paint", "draw", "name: t\nset: {done: true}\n", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &program.Program{Program: tt.by}
			def, err := p.ReadOwn("d.yaml", program.Text(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			started, err := p.Started(def)
			if err != nil {
				t.Fatal(err)
			}
			made, err := program.Rebuild(program.Env{Code: code(tt.here)})(t.Context(), started)
			if made != nil && made.Close != nil {
				defer made.Close()
			}
			if other, is := errors.AsType[*program.OtherProgramError](err); is != tt.refused || !is && err != nil {
				t.Fatalf("got error %v", err)
			} else if is && other.Program != tt.by {
				t.Errorf("the error names the program %q", other.Program)
			}
		})
	}
}
