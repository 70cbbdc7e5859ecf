// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/artifact/disk"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bananas": main})
}

// program is the program in a folder of its own, where its runs and pictures are.
type program struct {
	*testing.T
	dir string
}

func newProgram(t *testing.T) program { return program{t, t.TempDir()} }

// does calls the program, which has to end with a code, and returns its output.
func (p program) does(code int, args ...string) (stdout, stderr string) {
	p.Helper()
	cmd := exec.CommandContext(p.Context(), "bananas", args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "OPENAI_API_KEY=", "OPENAI_BASE_URL=", "REFRAIN_STORE=", "REFRAIN_MODEL=")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != code {
		p.Fatalf("bananas %s: %v, want exit code %d\n%s%s", args, err, code, &out, &errs)
	}
	return out.String(), errs.String()
}

// pictures are the numbers of bananas in the versions of a run's picture.
func (p program) pictures(run string) (each []int) {
	p.Helper()
	files, err := disk.Open(filepath.Join(p.dir, ".refrain", "artifacts"))
	if err != nil {
		p.Fatal(err)
	}
	defer files.Close()
	for {
		res, err := files.Load(p.Context(), &artifact.LoadRequest{AppName: "refrain", UserID: "user", SessionID: run,
			FileName: pictureFile, Version: int64(len(each)) + 1})
		if err != nil {
			return each
		}
		if got := res.Part.InlineData.MIMEType; got != "image/png" {
			p.Errorf("version %d is of type %q", len(each)+1, got)
		}
		each = append(each, mustCount(p.T, res.Part.InlineData.Data))
	}
}

func mustCount(t *testing.T, picture []byte) int {
	t.Helper()
	n, err := count(picture)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// K5, T14, B10: pictures are painted until one has five bananas; the pictures
// say so, and not the model.
func TestFiveBananas(t *testing.T) {
	file, err := filepath.Abs("loop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range []string{"bananas", file} {
		t.Run(filepath.Base(definition), func(t *testing.T) {
			p := newProgram(t)
			out, errs := p.does(0, "run", definition, "--session", "s1", "--record", "run.jsonl")
			if out != "bananas.png has 5 bananas, 5 were wanted.\n" {
				t.Errorf("the result is %q", out)
			}
			for _, want := range []string{"Stopped: condition after 3 iterations: state.counted == state.wanted\n",
				"stop_reason=condition iterations=3 result=finalizer", "bananas show s1"} {
				if !strings.Contains(errs, want) {
					t.Errorf("%q is not in\n%s", want, errs)
				}
			}
			if diff := cmp.Diff([]int{7, 3, 5}, p.pictures("s1")); diff != "" {
				t.Errorf("bananas in the pictures (-want +got):\n%s", diff)
			}
			record, err := os.ReadFile(filepath.Join(p.dir, "run.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Count(string(record), `"modelVersion":"scripted"`); said != 3*4 {
				t.Errorf("%d events say that they are scripted, want 12", said)
			}
		})
	}
}

// A run of the program is forked and resumed like any other, with the script that the program has inside: the folder has
// no file of the example.
func TestForkPaintsAgain(t *testing.T) {
	p := newProgram(t)
	p.does(0, "run", "bananas", "--session", "s1")
	id, _ := p.does(0, "fork", "s1", "--at-iteration", "1")
	out, errs := p.does(0, "resume", strings.TrimSpace(id))
	if !strings.HasPrefix(out, "bananas.png has 5 bananas") || !strings.Contains(errs, "stop_reason=condition") {
		t.Errorf("the fork says\n%s%s", out, errs)
	}
}

// B2, T12: the wrong number for ever ends at the limit, with what there is.
func TestNeverFive(t *testing.T) {
	const script = `answers:
  - {agent: painter, match_request: answer generate_image, text: Here are five., repeat: true}
  - {agent: painter, calls: [{name: generate_image, args: {count: 10}}], repeat: true}
  - {agent: counter, match_request: answer count_food_items, text: There are five. We are done., repeat: true}
  - {agent: counter, calls: [{name: count_food_items, args: {file: bananas.png}}], repeat: true}
`
	p := newProgram(t)
	if err := os.WriteFile(filepath.Join(p.dir, "never.yaml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	_, errs := p.does(3, "run", "bananas", "--model", "scripted/never.yaml", "--session", "s1")
	if !strings.Contains(errs, "stop_reason=max_iterations iterations=10") {
		t.Errorf("want the limit of 10:\n%s", errs)
	}
	if all := p.pictures("s1"); len(all) != 10 || all[9] == 5 {
		t.Errorf("the pictures have %d bananas, want ten pictures, and not five in the last", all)
	}
}

// A real model needs its key.
func TestModelOfAProvider(t *testing.T) {
	if _, errs := newProgram(t).does(2, "run", "bananas", "--model", "openai/gpt-5-mini"); !strings.Contains(errs, "OPENAI_API_KEY") {
		t.Errorf("got %s", errs)
	}
}

// What is painted is counted: both are done for real.
func TestPaintAndCount(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for n := range room + 1 {
		picture, err := paint(rng, n)
		if err != nil {
			t.Fatal(err)
		}
		if got := mustCount(t, picture); got != n {
			t.Errorf("painted %d bananas, counted %d", n, got)
		}
	}
	for _, n := range []int{-1, room + 1} {
		if _, err := paint(rng, n); err == nil || !strings.Contains(err.Error(), "there is room for 0 to 12 bananas") {
			t.Errorf("paint %d: %v", n, err)
		}
	}
	if _, err := count([]byte("no picture")); err == nil {
		t.Error("counted what is no picture")
	}
}

// An area is one thing, however it is bent; a speck is none.
func TestCountLooksAtAreas(t *testing.T) {
	img := image.NewRGBA(image.Rect(0, 0, 100, 100))
	for _, r := range []image.Rectangle{
		image.Rect(0, 0, 30, 8), image.Rect(22, 8, 30, 30), // one, with a corner
		image.Rect(30, 30, 50, 50), // touches it at a corner only
		image.Rect(60, 60, 74, 74), // too small
		image.Rect(80, 0, 100, 100),
	} {
		draw.Draw(img, r, image.NewUniform(yellow), image.Point{}, draw.Src)
	}
	draw.Draw(img, image.Rect(0, 60, 50, 100), image.NewUniform(color.RGBA{200, 30, 30, 255}), image.Point{}, draw.Src) // an apple
	var out bytes.Buffer
	if err := png.Encode(&out, img); err != nil {
		t.Fatal(err)
	}
	if n := mustCount(t, out.Bytes()); n != 3 {
		t.Errorf("counted %d, want 3", n)
	}
}

// The same seed paints the same pictures.
func TestPicturesAreDeterministic(t *testing.T) {
	a, b := newStudio(7), newStudio(7)
	for range 3 {
		one, err1 := a.paint(5)
		two, err2 := b.paint(5)
		if string(one) != string(two) || err1 != nil || err2 != nil {
			t.Fatal("the pictures differ", err1, err2)
		}
	}
}
