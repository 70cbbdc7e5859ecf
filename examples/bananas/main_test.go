// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model"
	"github.com/refrain-dev/refrain/model/scripted"
	"github.com/refrain-dev/refrain/progress"
	"github.com/refrain-dev/refrain/session"
)

func noEnv(string) string { return "" }

// painted runs the loop with the pictures of a seed.
func painted(t *testing.T, file string, llm model.LLM, seed uint64) ([]*session.Event, artifact.Service) {
	t.Helper()
	tools, err := newTools(newStudio(seed))
	if err != nil {
		t.Fatal(err)
	}
	root, err := newAgents(t.Context(), file, llm, tools)
	if err != nil {
		t.Fatal(err)
	}
	files := artifact.InMemoryService()
	evs, err := paintUntilRight(t.Context(), root, files, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return evs, files
}

// picture is a version of the artifact; 0 is the last.
func picture(t *testing.T, files artifact.Service, version int64) []byte {
	t.Helper()
	res, err := files.Load(t.Context(), &artifact.LoadRequest{AppName: appName, UserID: userID, SessionID: sessionID, FileName: pictureFile, Version: version})
	if err != nil {
		t.Fatal(err)
	}
	if got := res.Part.InlineData.MIMEType; got != "image/png" {
		t.Errorf("version %d is of type %q", version, got)
	}
	return res.Part.InlineData.Data
}

func mustCount(t *testing.T, picture []byte) int {
	t.Helper()
	n, err := count(picture)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func stopOf(evs []*session.Event) *loop.StopRecord {
	var f progress.Fold
	for _, ev := range evs {
		f.Add(ev)
	}
	return f.Stop()
}

// K5, T14, B10: pictures are painted until one has five bananas; the pictures
// say so, and not the model.
func TestFiveBananas(t *testing.T) {
	for _, file := range []string{"", "loop.yaml"} {
		t.Run("agents of "+file, func(t *testing.T) {
			llm, err := openModel(t.Context(), "", noEnv)
			if err != nil {
				t.Fatal(err)
			}
			evs, files := painted(t, file, llm, 7)
			stop := stopOf(evs)
			if stop == nil || stop.Reason != loop.ReasonCondition || stop.Iterations != 3 || stop.Result.Source != loop.FromFinalizer {
				t.Errorf("stopped by %+v, want the condition after 3 iterations", stop)
			}
			var each []int
			for v := range int64(3) {
				each = append(each, mustCount(t, picture(t, files, v+1)))
			}
			if diff := cmp.Diff([]int{7, 3, 5}, each); diff != "" {
				t.Errorf("bananas in the pictures (-want +got):\n%s", diff)
			}
			if n := mustCount(t, picture(t, files, 0)); n != 5 {
				t.Errorf("the last picture has %d bananas", n)
			}
			last := evs[len(evs)-1]
			for i := len(evs) - 1; last.Text() == ""; i-- {
				last = evs[i]
			}
			if got := last.Text(); got != "bananas.png has 5 bananas, 5 were wanted." {
				t.Errorf("the result is %q", got)
			}
			said := 0
			for _, ev := range evs {
				if ev.ModelVersion == "scripted" {
					said++
				}
			}
			if said != 3*4 {
				t.Errorf("%d events say that they are scripted, want 12", said)
			}
		})
	}
}

// B2, T12: the wrong number for ever ends at the limit, with what there is.
func TestNeverFive(t *testing.T) {
	llm, err := scripted.New(scripted.Script{Answers: []scripted.Answer{
		{Agent: "painter", MatchRequest: "answer generate_image", Text: "Here are five.", Repeat: true},
		{Agent: "painter", Calls: []scripted.Call{{Name: "generate_image", Args: map[string]any{"count": 10}}}, Repeat: true},
		{Agent: "counter", MatchRequest: "answer count_food_items", Text: "There are five. We are done.", Repeat: true},
		{Agent: "counter", Calls: []scripted.Call{{Name: "count_food_items", Args: map[string]any{"file": pictureFile}}}, Repeat: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	evs, files := painted(t, "", llm, 1)
	stop := stopOf(evs)
	if stop == nil || stop.Reason != loop.ReasonMaxIterations || stop.Iterations != 10 {
		t.Errorf("stopped by %+v, want the limit of 10", stop)
	}
	if n := mustCount(t, picture(t, files, 10)); n == 5 {
		t.Error("the last picture has five bananas after all")
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

func TestRunPrintsWhatHappens(t *testing.T) {
	dir := t.TempDir()
	var out strings.Builder
	if err := run(t.Context(), []string{"-out", dir, "-definition", "loop.yaml"}, noEnv, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"[painter] saved bananas.png, version 3\n", "[counter] counted 7\n", "[counter] counted 5\n",
		"Stopped: condition after 3 iterations: state.counted == state.wanted\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	uri, err := url.Parse(lines[len(lines)-1])
	if err != nil || uri.Scheme != "file" {
		t.Fatalf("no file at the end of\n%s", out.String())
	}
	kept, err := os.ReadFile(uri.Path)
	if err != nil {
		t.Fatal(err)
	}
	if n := mustCount(t, kept); n != 5 {
		t.Errorf("the file has %d bananas", n)
	}
	if err := run(t.Context(), []string{"-model", "openai/gpt-5-mini"}, noEnv, io.Discard, io.Discard); err == nil ||
		!strings.Contains(err.Error(), "OPENAI_API_KEY") {
		t.Errorf("got %v", err)
	}
}
