// SPDX-License-Identifier: Apache-2.0

package loopagent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/agent/workflowagents/loopagent"
	"github.com/refrain-dev/refrain/loop"
)

// comparing returns a loop whose versions have the given qualities, and whose judge prefers the first place by favor. pairs gets
// what the judge sees: the version in the state and the best one.
func comparing(t *testing.T, rec **loop.StopRecord, favor float64, qualities []float64, pairs *[]string) agent.Agent {
	n := 0
	writer := does(t, "writer", func(_ agent.InvocationContext, say say) error {
		say(sets("", "draft", qualities[n]))
		n++
		return nil
	})
	judge := does(t, "judge", func(ctx agent.InvocationContext, say say) error {
		first, err := ctx.Session().State().Get("draft")
		if err != nil {
			return err
		}
		looked, _ := drive.At(ctx).Lookup("draft")
		second, _ := drive.At(ctx).Lookup("best.draft")
		if looked != first {
			t.Errorf("a prompt has the draft %v, the state %v", looked, first)
		}
		for range ctx.Session().State().All() { // all of a state can be read
		}
		for ev := range drive.At(ctx).Events().All() {
			if ev.Author == "writer" {
				t.Errorf("the judge sees an event of the writer: %v", ev.Actions.StateDelta)
			}
		}
		*pairs = append(*pairs, fmt.Sprint(first, " ", second))
		say(sets("", "score", max(-2, min(2, first.(float64)-second.(float64)+favor))))
		return nil
	})
	return loopOf(t, "l", uint(len(qualities)), func(c *loopagent.Config) {
		s := loop.Score{Judge: &loop.Judge{Step: "judge", Samples: 2, Compare: loop.CompareBest}}
		scored(rec, s)(c)
		c.Result, c.OutputKey = "draft", "result"
	}, writer, judge)
}

// A judge that compares sees each version beside the best one, in both places, so that a preference for a place cancels. The score is the
// place in the chain of comparisons. For the first version, which is compared with nothing, it is asked once.
func TestJudgeComparesVersions(t *testing.T) {
	var rec *loop.StopRecord
	var pairs []string
	s := newStage(t, comparing(t, &rec, 0.5, []float64{5, 6, 5.5, 7}, &pairs), false)
	if _, err := s.send(t, t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	// The judge is off by 0.5, so only a difference of more than 1.5 errors is proved: version 2 is not, 4 is.
	check(t, "pairs", strings.Join(pairs, ", "), "5 5, 6 5, 5 6, 5.5 5, 5 5.5, 7 5, 5 7")
	check(t, "best score", *rec.BestScore, 1.75) // (min(2, 2.5) + 1.5) / 2
	check(t, "best iteration", rec.BestIteration, 4)
	check(t, "result", s.state(t, "result"), any("7"))
}

// A version that is proved to be better is the one with which later ones are compared.
func TestLaterVersionsAreComparedWithTheBest(t *testing.T) {
	var rec *loop.StopRecord
	var pairs []string
	mustPlay(t, comparing(t, &rec, 0, []float64{5, 6, 5.5, 7}, &pairs))
	check(t, "pairs", strings.Join(pairs, ", "), "5 5, 6 5, 5 6, 5.5 6, 6 5.5, 7 6, 6 7")
	check(t, "best score", *rec.BestScore, 2.0)
}

// G10, LOOP 14: a judge in Go that reads the state sees what it saw when it was asked first.
func TestJudgeInGoSeesTheSameStateEachTime(t *testing.T) {
	var rec *loop.StopRecord
	var seen []string
	judge := does(t, "judge", func(ctx agent.InvocationContext, say say) error {
		st, all := ctx.Session().State(), 0
		_, err := st.Get("score")
		for range st.All() {
			all++
		}
		seen = append(seen, fmt.Sprint(err == nil, " ", all))
		say(sets("", "score", 5.0))
		_, err = st.Get("score")
		seen = append(seen, fmt.Sprint("own ", err == nil))
		return nil
	})
	mustPlay(t, loopOf(t, "l", 1, judged(&rec, 3, loop.Score{}), turns(t, "writer", sets("", "draft", "x")), judge))
	check(t, "seen", strings.Join(seen, ", "), "false 1, own true, false 1, own true, false 1, own true")
}
