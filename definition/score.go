// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/expr"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/vocabulary"
	"github.com/refrain-dev/refrain/loop"
)

// withBaseline returns the score of a loop with the steps that give it, if it has a baseline. Where commands measure
// what other commands make of the files of a workspace, it has one unless the file says no.
func (a *Agent) withBaseline(s *loop.Score) *loop.Score {
	if s == nil {
		return nil
	}
	names, measured := a.scorers(s)
	_, given := a.nodes["score.baseline"]
	if !s.Baseline && (given || !measured || a.def == nil || a.def.Workspace == nil) {
		return s
	}
	own := *s
	own.Baseline, own.Scorers = true, names
	return &own
}

// scoringAgents returns the names of the agents in a loop that write what its score is read from; none if all agents with a prompt do.
func (a *Agent) scoringAgents() (names []string) {
	if a.Loop.Score == nil {
		return nil
	}
	keys := scoreKeys(a.Loop.Score)
	others := false
	for sub := range a.All {
		switch {
		case sub == a:
		case sub.writesOneOf(keys):
			names = append(names, sub.Name)
		default:
			others = others || sub.Type == TypeLLM || sub.Type == TypeCLI
		}
	}
	if !others {
		return nil
	}
	return names
}

// scorers returns the steps of a loop that write what its score is read from. measured reports that all of them are
// commands, and that another command works before them.
func (a *Agent) scorers(s *loop.Score) (names []string, measured bool) {
	keys := scoreKeys(s)
	works := false
	measured = true
	for _, sub := range inOrder(a) {
		if !sub.contains(func(in *Agent) bool { return in.writesOneOf(keys) }) {
			works = works || sub.hasCommand()
			continue
		}
		names = append(names, sub.Name)
		measured = measured && sub.Command != nil && works
	}
	return names, measured && names != nil
}

var scoreParts = parts[loop.Score]{rows: []row[loop.Score]{
	field("key", "state key of the score: a number, JSON, or text with a number in it", aText, func(s *loop.Score) *string { return &s.Key }),
	field("label", "word before the number in a text, such as Score", aText, func(s *loop.Score) *string { return &s.Label }),
	field("field", "field of the score, if the value is JSON", aText, func(s *loop.Score) *string { return &s.Field }),
	field("expr", "expression that computes the score, in place of key", aWords, func(s *loop.Score) *string { return &s.Expr }),
	field("holdout", "state key of a second score, read in the same way, such as of tests that the agent never sees; the loop reports when it falls while the score rises", aText, func(s *loop.Score) *string { return &s.Holdout }),
	field("judge", "step that gives the score; or {step, samples} to ask it several times", as(judgeParts.value(), withSamples), func(s *loop.Score) **loop.Judge { return &s.Judge }),
	field("baseline", "true scores what is there before the first iteration, so that a worse first one is not kept; the default where commands measure the files of a workspace", aBool, func(s *loop.Score) *bool { return &s.Baseline }),
	field("dimensions", "parts of the score: fields of the JSON", each(aText, listing{empty: "leave it out to count whatever the answer has"}), func(s *loop.Score) *[]string { return &s.Dimensions }),
	field("dimension_target", "target that every part must reach too", maybe(aNumber), func(s *loop.Score) **float64 { return &s.DimensionTarget }),
	field("target", "end the loop when the score reaches this", maybe(aNumber), func(s *loop.Score) **float64 { return &s.Target }),
	field("min_delta", "end the loop when the score improves by less than this", maybe(aNumber), func(s *loop.Score) **float64 { return &s.MinDelta }),
	field("min_delta_percent", "min_delta in percent of the previous score", maybe(aNumber), func(s *loop.Score) **float64 { return &s.MinDeltaPercent }),
	field("patience", "iterations in a row whose improvement must be too small", wholeFrom[uint](0, ""), func(s *loop.Score) *uint { return &s.Patience }).shown(1),
	field("lower_is_better", "true if lower scores are better", aBool, func(s *loop.Score) *bool { return &s.LowerIsBetter }),
}, or: "key", form: "a state key, or a map", keep: true}

var judgeParts = parts[loop.Judge]{rows: []row[loop.Judge]{
	field("step", "step that gives the score", aText, func(j *loop.Judge) *string { return &j.Step }),
	special("samples", "how often to ask it about the same work, at most 32; 3..12 asks 3 times, and then until it is clear whether the target is reached, at most 12 times",
		samplesShape, takesSamples).shown(1),
	field("compare", "best shows it each version and the best one, half of the samples in swapped places, and it answers from -2 to 2 by how much the first is better; the samples are then 4 if left out",
		oneWord(loop.CompareBest), func(j *loop.Judge) *loop.Comparison { return &j.Compare }),
}, or: "step", form: "the name of a step, or a map with step and samples"}

// comparisons is how often a judge that compares is asked, if the file does not say it. Two times would lose to absolute marks.
const comparisons = 4

func withSamples(j *loop.Judge) *loop.Judge {
	if j != nil && j.Compare != "" && j.Samples == 0 {
		j.Samples = comparisons
	}
	return j
}

// compares checks a judge that compares versions.
func (c *checker) compares(a *Agent) {
	s := a.Loop.Score
	if s == nil || s.Judge == nil || s.Judge.Compare == "" {
		return
	}
	at := a.at("score.judge.compare")
	if c.def.Workspace != nil {
		c.report(at, CodeConflict, "%q cannot compare versions of a workspace, of whose files there is one version at a time", s.Judge.Step).
			Hint = "leave out compare"
	}
	judge := a.descendant(s.Judge.Step)
	if judge == nil || judge.Type != TypeLLM {
		return
	}
	if !slices.ContainsFunc(c.reads, func(rd read) bool {
		return rd.agent.in(judge) && strings.HasPrefix(rd.name, "best.") && rd.name != "best.score"
	}) {
		c.report(at, CodeJudge, "%q compares two versions, and reads only one of them", judge.Name).
			Hint = "let it read both, such as {{draft}} and {{best.draft}}, and answer from -2 to 2 by how much the first is better"
	}
}

const rangePattern = `^0*[1-9][0-9]{0,8}\.\.0*[1-9][0-9]{0,8}$`

func samplesShape() shape {
	return schema.Either(schema.Whole(1), &jsonschema.Schema{Type: "string", Title: "range such as 3..12", Pattern: rangePattern})
}

// takesSamples reads a number of samples, or a range of them.
func takesSamples(p place, n *source.Node, j *loop.Judge) bool {
	low, high, is := strings.Cut(n.Value, "..")
	if n.Kind != source.Scalar || !is {
		v, ok := wholeFrom[uint](1, "").read(p, n)
		j.Samples = v
		return ok
	}
	least, err := strconv.ParseUint(low, 10, 31)
	most, other := strconv.ParseUint(high, 10, 31)
	if err != nil || other != nil || least == 0 || most == 0 {
		p.report(n, CodeValue, "%s must be a whole number of at least 1, or two of them, got %q", p.field, n.Value).Hint = "write a range as 3..12"
		return false
	}
	j.Samples, j.Max = uint(least), uint(most)
	return true
}

// wordsAsNumbers warns of numbers that must be found in a model's text: a score without a label, and a comparison
// that can never hold.
func (c *checker) wordsAsNumbers(a *Agent) {
	if s := a.Loop.Score; s != nil {
		pinned := s.Label != "" || s.Field != "" || len(s.Dimensions) > 0
		if w := c.wordsIn(s.Key, a); w != nil && !pinned {
			c.warn(a.at("score.key"), CodeWords, "%s is a text that %q writes, in which the score must be found", s.Key,
				w.Name).
				Hint = "give " + quoteText(w.Name) + " an output_schema, or the score a label: the word before the number"
		}
		if schemas := c.answers(s.Key); s.Field != "" && schemas != nil {
			c.field(a.at("score.field"), append([]string{s.Key}, strings.Split(s.Field, ".")...), schemas)
		}
		c.dimensionTarget(a, s)
	}
	if a.Loop.StopWhen != nil {
		eachExpression("stop_when", a.Loop.StopWhen, func(field, src string) { c.wordsCompared(a, field, src) })
	}
}

// wordsIn returns the model agent of a loop that writes a text to a key; nil if there is none, or if another agent
// may write the key too.
func (c *checker) wordsIn(key string, a *Agent) *Agent {
	ws := c.writers[key]
	if key == "" || len(ws) != 1 || !ws[0].in(a) || !saysWords(ws[0]) {
		return nil
	}
	return ws[0]
}

func saysWords(a *Agent) bool {
	return a.Type == TypeLLM && (a.LLM == nil || a.LLM.OutputSchema == nil)
}

// dimensionTarget checks a dimension_target without dimensions. It refuses one that the score can never meet, because
// its writer gives only a number, and warns about one that only some scores can meet.
func (c *checker) dimensionTarget(a *Agent, s *loop.Score) {
	if s.DimensionTarget == nil || len(s.Dimensions) > 0 || s.Key == "" {
		return
	}
	ws := c.writers[s.Key]
	without := 0
	for _, w := range ws {
		if numberAlone(w, s.Key) {
			without++
		}
	}
	const hint = "list them in score.dimensions, or have the judge answer with an object \"dimensions\""
	at := a.at("score.dimension_target")
	switch {
	case len(ws) > 0 && without == len(ws):
		c.report(at, CodeStop, "dimension_target can never be met: %s is written by %q, which gives no dimensions", s.Key, ws[0].Name).Hint = hint
	case without > 0 || slices.ContainsFunc(ws, func(w *Agent) bool {
		return w.Type == TypeExpression || w.Type == TypeTemplate
	}):
		c.warn(at, CodeStop, "dimension_target is met only if the score has dimensions, and none are named").Hint = hint
	}
}

// numberAlone reports whether the values that an agent writes to a key can have no dimensions.
func numberAlone(w *Agent, key string) bool {
	switch {
	case w.Type == TypeLLM:
		return w.LLM != nil && w.LLM.OutputSchema != nil && w.LLM.OutputSchema.Properties["dimensions"] == nil
	case w.Type != TypeExpression || w.Expression == nil:
		return false
	}
	src, ok := w.Expression.Set[key]
	if !ok {
		src = w.Expression.Value
	}
	p, err := expr.Compile(src, vocabulary.TaskVariables...)
	return err == nil && (p.Type() == expr.Int || p.Type() == expr.Double)
}

// selfJudged notes a score that comes from the only agent of the loop that makes a result.
func (c *checker) selfJudged(a *Agent) {
	s := a.Loop.Score
	if s == nil {
		return
	}
	var judge *Agent
	makers := 0
	rated := []string{s.Key}
	if p, err := expr.Compile(s.Expr, vocabulary.ConditionVariables...); err == nil {
		rated, _ = p.Reads("state")
	}
	for _, sub := range a.SubAgents {
		switch {
		case sub.OutputKey == LoopOutput && !a.Loop.FinalizeEach, sub.Type == TypeExpression, sub.Type == TypeTemplate:
			continue
		case s.Judge != nil && s.Judge.Step == sub.Name, s.Judge == nil && sub.OutputKey != "" &&
			slices.Contains(rated, sub.OutputKey):
			judge = sub
		default:
			makers++
		}
	}
	if judge != nil && judge.Type == TypeLLM && makers == 0 {
		c.note(judge.at("name"), CodeJudge, "%q judges itself: no other step of the loop %q makes anything", judge.Name,
			a.Name).
			Hint = "let one agent write, and another one judge"
	}
	c.noise(a, judge)
}

// soonFlat is after how many iterations a loop of judged scores that gain nothing is mostly seen to have converged; see
// doc/stopping.md.
const soonFlat = 7

// noise notes a loop that compares the scores of a model as if they were exact, and one that ends before a judge's scores
// can show that nothing is gained any more. The judge is the step that writes the score, or nil. A scripted model has no noise.
func (c *checker) noise(a, judge *Agent) {
	if judge == nil {
		return
	}
	if by := judge.naming(); judge.Type == TypeLLM && by != nil && strings.HasPrefix(by.Model, scriptedProvider+"/") {
		return
	}
	p := a.Plan()
	s := p.Score
	settles := s.MinDelta != nil || s.MinDeltaPercent != nil || p.NotWorth != nil
	switch n := p.MaxIterations; {
	case s.Judge == nil && judge.Type == TypeLLM && (settles || p.OnRegression == loop.RollbackOnWorse):
		c.note(a.at("score"), CodeNoise, "the score of the model %q is taken for exact, though it varies by chance", judge.Name).
			Hint = fmt.Sprintf("judge: {step: %s} lets the loop learn the noise, and samples: 3 makes it less", judge.Name)
	case s.Judge != nil && settles && n > 0 && n < soonFlat:
		c.note(a.at("max_iterations"), CodeNoise, "the limit is %d iterations, and with a judge a flat loop is seen after about %d",
			n, soonFlat).Hint = fmt.Sprintf("set max_iterations above %d, or leave out min_delta and not_worth", soonFlat)
	}
}
