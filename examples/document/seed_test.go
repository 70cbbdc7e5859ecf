// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/model/modeltest"
	"github.com/refrain-dev/refrain/model/scripted"
)

// seedOutput is what the seed's program prints with the answers of script.yaml.
const seedOutput = `[InitialWriterAgent] A cat lived in a library. She slept on the books.
[CriticAgent] Give the cat a name and a wish.
[RefinerAgent] Mimi lived in a library. She slept on the books and wished that she could read them.
[CriticAgent] Let the wish come true.
[RefinerAgent] ` + refined + `
[CriticAgent] No major issues found.
[Tool Call] exitLoop triggered by RefinerAgent 
[RefinerAgent] leaves the loop
current_document: ` + refined + "\n"

// A7, A8, K4, C33, T4, T15: the programs in testdata, as they were written for ADK, do
// what they should when nothing but the import prefix is changed. A real process
// asks a server that speaks Gemini's wire format.
func TestADKProgramsMoveOver(t *testing.T) {
	bin := build(t, map[string]string{"adk_v1": `"google.golang.org/adk/`, "adk_v2": `"google.golang.org/adk/v2/`})
	for _, name := range []string{"adk_v1", "adk_v2"} {
		t.Run(name, func(t *testing.T) {
			s, err := scripted.Parse(script)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range s.Answers { // the seed's tool takes no arguments
				for i := range a.Calls {
					a.Calls[i].Args = map[string]any{}
				}
			}
			srv := modeltest.GeminiServer(t, s)
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, name))
			cmd.Env = []string{"GOOGLE_API_KEY=key", "GOOGLE_GEMINI_BASE_URL=" + srv.BaseURL, "SYSTEMROOT=" + os.Getenv("SYSTEMROOT")}
			var out, problems bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &problems
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s", err, &problems)
			}
			if diff := cmp.Diff(seedOutput, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s%s", diff, &problems)
			}
			// One request for each answer, and none after the exit.
			if n := len(srv.Requests()); n != len(s.Answers) {
				t.Errorf("the model was asked %d times, want %d", n, len(s.Answers))
			}
			last := srv.Requests()[len(srv.Requests())-1]
			if system := last.Config.SystemInstruction.Parts[0].Text; !strings.Contains(system, refined) {
				t.Errorf("the refiner did not see the last document:\n%s", system)
			}
		})
	}
}

// build vets and builds programs of testdata, with the import prefix of each
// changed to this module's, and returns the folder that they are in.
func build(t *testing.T, prefixes map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	overlay := struct{ Replace map[string]string }{make(map[string]string)}
	var pkgs []string
	for name, prefix := range prefixes {
		file, err := filepath.Abs(filepath.Join("testdata", name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Count(text, []byte(prefix)) < 9 || bytes.Contains(text, []byte("refrain")) {
			t.Fatalf("%s does not import ADK's packages only", file)
		}
		moved := filepath.Join(dir, name+".go")
		if err := os.WriteFile(moved, bytes.ReplaceAll(text, []byte(prefix), []byte(`"github.com/refrain-dev/refrain/`)), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[file] = moved
		pkgs = append(pkgs, "./testdata/"+name)
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	replaced := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(replaced, list, 0o600); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"build", "-overlay", replaced, "-o", bin}, {"vet", "-overlay", replaced}} {
		out, err := exec.CommandContext(t.Context(), "go", append(args, pkgs...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, out)
		}
	}
	return bin
}
