// SPDX-License-Identifier: Apache-2.0

package rehearsal_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/authoring/edit"
	"github.com/refrain-dev/refrain/internal/authoring/rehearsal"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
)

// source is a definition with the files that it refers to, by their names.
type source struct {
	name  string
	files fstest.MapFS
}

// fileOf is one that has a single file.
func fileOf(text string) source {
	return source{"loop.yaml", fstest.MapFS{"loop.yaml": {Data: []byte(text)}}}
}

// folderOf is one with all that is beside it.
func folderOf(t *testing.T, file string) source {
	t.Helper()
	s := source{filepath.Base(file), make(fstest.MapFS)}
	root := os.DirFS(filepath.Dir(file))
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".yaml" {
			return err
		}
		data, err := fs.ReadFile(root, name)
		s.files[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s source) definition() (*definition.Definition, error) {
	return definition.Parse(s.name, s.files[s.name].Data, definition.Options{FS: s.files, Path: s.name})
}

// with is the source with another text of one of its files.
func (s source) with(name, text string) source {
	s.files = maps.Clone(s.files)
	s.files[name] = &fstest.MapFile{Data: []byte(text)}
	return s
}

// definitions are the files of all examples and templates.
func definitions(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"../../../examples/*/*.yaml", "../../../command/internal/writing/templates/*/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			// Of the template tune the verdict is a program's, for which stand-ins do not read the best version.
			if !strings.HasPrefix(filepath.Base(file), "script") && filepath.Base(filepath.Dir(file)) != "tune" {
				all = append(all, file)
			}
		}
	}
	if len(all) < 15 {
		t.Fatalf("only %d definitions: %q", len(all), all)
	}
	return all
}

// Every example and every template ends with stand-ins in each way in which it
// can, of none without a workspace a rehearsal has to say that it does not know, and what it advises is lines that can be
// added: with them in the file the fault is caught, or caught sooner. The short form adds them to every third file.
func TestAdviceCanBeTaken(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	taken := make(map[rehearsal.Fault]int)
	t.Cleanup(func() { t.Logf("taken: %v", taken) })
	for i, file := range definitions(t) {
		t.Run(strings.TrimPrefix(filepath.ToSlash(file), "../../../"), func(t *testing.T) {
			t.Parallel()
			src := folderOf(t, file)
			def, err := src.definition()
			if err != nil {
				t.Fatal(err)
			}
			// All but the crashes, of which there is nothing to advise, and which take long.
			faults := slices.DeleteFunc(rehearsal.Faults(), func(f rehearsal.Fault) bool { return f == rehearsal.Crash })
			r := rehearse(t, def, rehearsal.Config{Faults: faults})
			verdicts(t, file, r)
			programs := def.Workspace != nil // its score is what programs print of its files, and stand-ins do not
			for _, e := range r.Endings {
				if !e.Reached && !programs {
					t.Errorf("with nothing wrong: %s", e)
				}
			}
			for _, f := range r.Findings {
				switch {
				case f.Status == rehearsal.Unknown && programs:
				case f.Status == rehearsal.Unknown:
					t.Errorf("%s: it is not known: %s", f.Fault, f.Detail)
				case f.Status == rehearsal.Uncaught && f.Advice == "":
					t.Errorf("%s: nothing is advised: %s", f.Fault, f.Detail)
				case f.Advice == "", i%longtest.N(9, 1) != 0:
				case f.Add == nil:
					takeLoop(t, src, &f)
				default:
					take(t, src, &f)
				}
				if f.Advice != "" {
					mu.Lock()
					taken[f.Fault]++
					mu.Unlock()
				}
			}
		})
	}
}

// LOOP 21: an agent in no loop gets limits of time from one of its own.
func TestAdviceForAnAgentInNoLoop(t *testing.T) {
	src := fileOf(`name: story
type: sequential
sub_agents:
  - name: writer
    instructions: Write.
    output_key: draft
  - name: refine
    sub_agents:
      - {name: critic, instructions: "Judge {{draft}}", can_exit_loop: true}
`)
	def, err := src.definition()
	if err != nil {
		t.Fatal(err)
	}
	f := rehearse(t, def, rehearsal.Config{Faults: []rehearsal.Fault{rehearsal.StepHung}}).Findings[0]
	if f.Status != rehearsal.Uncaught || !slices.Equal(f.Steps, []string{"writer"}) {
		t.Fatalf("%+v", f)
	}
	takeLoop(t, src, &f)
}

// take adds what a finding advises and looks at the same fault again.
func take(t *testing.T, src source, f *rehearsal.Finding) {
	t.Helper()
	for _, fix := range f.Add {
		var err error
		if src, err = src.added(fix); err != nil {
			t.Errorf("%s: %s: %v", f.Fault, fix, err)
			return
		}
	}
	again(t, src, f)
}

// takeLoop puts the agents of a finding into loops of their own, as is advised of
// those that are in none.
func takeLoop(t *testing.T, src source, f *rehearsal.Finding) {
	t.Helper()
	text := string(src.files[src.name].Data)
	if !strings.Contains(f.Advice, "into a loop of its own") {
		t.Errorf("%s: no program could take the advice %q", f.Fault, f.Advice)
		return
	}
	for _, name := range f.Steps {
		var b strings.Builder
		in := ""
		for line := range strings.Lines(text) {
			dash, rest, item := strings.Cut(line, "- name: "+name+"\n")
			switch {
			case item && strings.TrimSpace(dash) == "" && rest == "":
				in = dash
				fmt.Fprintf(&b, "%[1]s- name: %[2]s_once\n%[1]s  type: loop\n%[1]s  max_iterations: 1\n%[1]s  sub_agents:\n%[1]s    - name: %[2]s\n%[1]s      can_exit_loop: false\n", in, name)
			case in != "" && strings.HasPrefix(line, in+"  "):
				b.WriteString("    " + line)
			default:
				if strings.TrimSpace(line) != "" {
					in = ""
				}
				b.WriteString(line)
			}
		}
		text = b.String()
	}
	again(t, src.with(src.name, text), f)
}

func again(t *testing.T, src source, was *rehearsal.Finding) {
	t.Helper()
	def, err := src.definition()
	if err != nil {
		t.Errorf("%s: with %q: %v", was.Fault, was.Advice, err)
		return
	}
	found := false
	for _, f := range rehearse(t, def, rehearsal.Config{Faults: []rehearsal.Fault{was.Fault}}).Findings {
		if was.Loop != "" && f.Loop != was.Loop || len(was.Steps) > 0 && !slices.ContainsFunc(f.Steps, func(s string) bool { return slices.Contains(was.Steps, s) }) {
			continue
		}
		found = true
		switch {
		case f.Status == rehearsal.Uncaught, f.Status == rehearsal.Unknown:
			t.Errorf("%s: with %q it is still %s: %s", was.Fault, was.Advice, f.Status, f.Detail)
		case was.Status == rehearsal.Caught && (f.Stop == nil || f.Stop.Iteration >= was.Stop.Iteration):
			t.Errorf("%s: with %q it is no sooner: %s, before it was %s", was.Fault, was.Advice, f.Detail, was.Detail)
		}
	}
	if !found {
		t.Errorf("%s: with %q nothing is said of it any more", was.Fault, was.Advice)
	}
}

// added is with a field added to one of the agents, or to a map in it.
func (s source) added(fix rehearsal.Fix) (source, error) {
	def, err := s.definition()
	if err != nil {
		return s, err
	}
	for a := range def.Root.All {
		if a.Name != fix.Agent {
			continue
		}
		file := a.Position().File
		e, err := edit.New(s.files[file].Data)
		if err == nil {
			err = e.Fix(fix.Agent, fix.Field, fix.Value)
		}
		if err != nil {
			return s, err
		}
		return s.with(file, string(e.Bytes())), nil
	}
	return s, fmt.Errorf("there is no agent %q", fix.Agent)
}
