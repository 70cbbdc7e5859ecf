// SPDX-License-Identifier: Apache-2.0

package definition_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/model/scripted"
)

const stopping = "../doc/stopping.md"

// recipe is a definition in the document, and the line behind it.
type recipe struct{ heading, yaml, ends string }

// recipes are the definitions in the document.
func recipes(t *testing.T) (all []recipe) {
	t.Helper()
	heading := ""
	for part := range strings.SplitSeq(readFile(t, stopping), "\n#") {
		heading, _, _ = strings.Cut(strings.TrimLeft(part, "# "), "\n")
		for _, block := range yamlBlocks(part) {
			_, after, _ := strings.Cut(part, block+"```\n\n")
			ends, _, _ := strings.Cut(after, "\n")
			all = append(all, recipe{heading, block, strings.TrimSpace(ends)})
		}
	}
	return all
}

// spoken are an agent's answers, one a turn.
func spoken(agent string, texts ...string) (answers []scripted.Answer) {
	for _, text := range texts {
		answers = append(answers, scripted.Answer{Agent: agent, Text: text})
	}
	return answers
}

// K11, T21, T23, T25, T26, T27: the recipes are whole, load without a warning, and end
// as the document says.
func TestRecipesStopAsPromised(t *testing.T) {
	reviews := func(scores ...string) (all []string) {
		for _, s := range scores {
			all = append(all, `{"score": `+s+`, "advice": "Name the hour."}`)
		}
		return all
	}
	drafts := spoken("writer", "one", "two", "three", "four", "five")
	runs := map[string]struct {
		answers []scripted.Answer
		reason  loop.StopReason
		result  loop.Result
	}{
		"By score":       {append(spoken("judge", reviews("6", "7.5", "8.2")...), drafts...), loop.ReasonTarget, loop.Result{Source: loop.FromBest, Iteration: 3}},
		"By improvement": {append(spoken("judge", reviews("6", "7", "7.5", "7.55", "7.5")...), drafts...), loop.ReasonConverged, loop.Result{Source: loop.FromBest, Iteration: 4}},
		"On a plateau": {append(spoken("judge", reviews("6", "7", "7.05", "7.02", "8", "8.3", "8.32", "8.25")...),
			append(drafts, spoken("writer", "six", "seven", "eight")...)...), loop.ReasonConverged, loop.Result{Source: loop.FromBest, Iteration: 7}},
		"By criteria": {append(spoken("reviewer", `{"failed_tests": 1, "documented": true, "quality": 9, "next": "1900 is none."}`,
			`{"failed_tests": 0, "documented": true, "quality": 8, "next": "Nothing."}`), spoken("coder", "func", "func leap")...),
			loop.ReasonCondition, loop.Result{Source: loop.FromLast, Iteration: 2}},
		"By a rule of your own": {append(append(spoken("buyer", "150", "165"), spoken("seller", "180", "165")...),
			scripted.Answer{Agent: "clerk", Text: "30 apart"},
			scripted.Answer{Agent: "clerk", Calls: []scripted.Call{{Name: "exit_loop", Args: map[string]any{"reason": "both say 165"}}}}),
			loop.ReasonExit, loop.Result{Source: loop.FromLast, Iteration: 2}},
	}
	for _, r := range recipes(t)[1:] {
		run, ok := runs[r.heading]
		if !ok {
			t.Errorf("no run of %s", r.heading)
			continue
		}
		delete(runs, r.heading)
		d := parse(t, r.yaml)
		if w := d.Warnings(); len(w) > 0 {
			t.Errorf("%s: %v", r.heading, w)
		}
		_, cfg := record(t, run.answers...)
		stop, answer := stopOf(t, d, cfg, nil)
		if stop.Reason != run.reason || stop.Result != run.result || stop.String() != r.ends || answer == "" {
			t.Errorf("%s:\n%s %+v %q\nwant %s %+v", r.heading, stop, stop.Result, answer, r.ends, run.result)
		}
	}
	for heading := range runs {
		t.Errorf("no recipe %s", heading)
	}
}

// T33: a loop has to have a way to end, and the document says so.
func TestLoopWithoutAWayToEndIsRefused(t *testing.T) {
	r := recipes(t)[0]
	_, err := definition.Parse("forever.yaml", []byte(r.yaml), definition.Options{})
	problems, _ := errors.AsType[definition.Problems](err)
	if len(problems) != 1 || problems[0].Code != definition.CodeEndless || problems[0].Message+" ["+problems[0].Code+"]" != r.ends {
		t.Errorf("refused with %v, want %s", err, r.ends)
	}
	if text := readFile(t, stopping); !strings.Contains(text, "A loop does not end by itself: its author has to say when") {
		t.Error("the document does not say so")
	}
}

// K7, K8: the document names an example or a recipe for each use of loops, which
// is there, and five cases that need none.
func TestEveryUseOfLoopsHasAnExample(t *testing.T) {
	text := readFile(t, stopping)
	_, table, _ := strings.Cut(text, "## What loops are for\n")
	table, not, _ := strings.Cut(table, "## When not to use one\n")
	for _, use := range []string{
		"iterative refinement", "retry logic", "polling", "conversation over several rounds", "solving a problem step by step", "working through data",
		"optimisation", "convergence", "learning from what went wrong", "negotiation", "correcting code", "tuning prices and configurations",
	} {
		_, row, ok := strings.Cut(table, "| "+use+" | ")
		row, _, _ = strings.Cut(row, "\n")
		links := regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`).FindAllStringSubmatch(row, -1)
		if !ok || len(links) == 0 {
			t.Errorf("nothing for %q", use)
		}
		for _, l := range links {
			into := text
			if l[1] != "" {
				if _, err := os.Stat("../doc/" + l[1]); err != nil {
					t.Errorf("%s: %v", use, err)
				}
				if into = ""; strings.HasSuffix(l[1], ".md") {
					into = readFile(t, "../doc/"+l[1])
				}
			}
			if title := strings.ReplaceAll(l[2], "-", " "); title != "" && !strings.Contains(strings.ToLower(into), "# "+title+"\n") {
				t.Errorf("%s: no section %q", use, l[2])
			}
		}
	}
	if n := strings.Count(not, "\n- "); n != 5 {
		t.Errorf("%d cases that need no loop", n)
	}
}
