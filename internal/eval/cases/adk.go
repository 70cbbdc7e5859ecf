// SPDX-License-Identifier: Apache-2.0

package cases

import (
	"bytes"
	"cmp"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/eval/check"
	"github.com/refrain-dev/refrain/internal/text/source"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// The forms of ADK's files. Unknown fields of them are ignored, as ADK does, and keys are in snake_case or camelCase.

// ADKCriteria is the name of the file beside a file of cases that has ADK's criteria.
const ADKCriteria = "test_config.json"

// isADK reports whether a file is in one of ADK's forms.
func isADK(root *source.Node) bool {
	root = source.Deref(root)
	if root.Kind == source.List {
		return isOldest(root) || slices.ContainsFunc(items(root), func(n *source.Node) bool { return of(n, "data") != nil })
	}
	return slices.ContainsFunc(source.Pairs(root), func(p source.Pair) bool { return p.Key.Value == "eval_cases" || p.Key.Value == "evalCases" })
}

// isOldest reports whether a list is in the oldest form, which has the turns of one case.
func isOldest(root *source.Node) bool {
	return slices.ContainsFunc(items(root), func(n *source.Node) bool {
		return of(n, "query") != nil || of(n, "expected_tool_use") != nil || of(n, "reference") != nil
	})
}

// of returns the value of a field with its name in snake_case or camelCase; nil if it is missing or null.
func of(n *source.Node, name string) *source.Node {
	if n == nil {
		return nil
	}
	for _, p := range source.Pairs(n) {
		if v := source.Deref(p.Value); (p.Key.Value == name || p.Key.Value == camel(name)) && !source.IsNull(v) {
			return v
		}
	}
	return nil
}

// camel returns evalCaseId for eval_case_id.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

// items returns the elements of a list; nothing for other values.
func items(n *source.Node) (all []*source.Node) {
	if n == nil || n.Kind != source.List {
		return nil
	}
	for _, c := range n.Content {
		all = append(all, source.Deref(c))
	}
	return all
}

// adk reads a file in one of ADK's forms.
func (f *file) adk(r *reader, root *source.Node) {
	f.set.ADK = f.set.Name
	list := root
	if root.Kind == source.Map {
		list = of(root, "eval_cases")
		if id := of(root, "eval_set_id"); id != nil {
			f.set.ADK = r.text(id, "eval_set_id")
			f.set.Name = f.set.ADK
		}
		if name := of(root, "name"); name != nil {
			f.set.Name = r.text(name, "name")
		}
	}
	switch {
	case root.Kind == source.List && isOldest(root):
		f.add(r, root, nil, Case{Turns: f.oldTurns(r, root)})
	case list == nil: // null
		r.report(root, definition.CodeMissing, "eval_cases is null").Hint = "write a list of ADK's cases, or the cases of doc/eval.md below cases:"
	case list.Kind == source.List && len(list.Content) == 0:
		r.report(list, definition.CodeMissing, "there are no cases")
	default:
		for i, item := range r.list(list, "eval_cases") {
			if !f.room(r, item, i) {
				return
			}
			f.adkCase(r, item)
		}
	}
	f.criteria(path.Join(path.Dir(r.src.Path), ADKCriteria))
}

// adkCase reads a case of any of the forms that have several.
func (f *file) adkCase(r *reader, n *source.Node) {
	if n.Kind != source.Map {
		r.wrong(n, "a case", "a map")
		return
	}
	var c Case
	id := cmp.Or(of(n, "eval_id"), of(n, "eval_case_id"))
	switch {
	case of(n, "data") != nil:
		id = of(n, "name")
		c.Turns = f.oldTurns(r, of(n, "data"))
		c.State = r.state(cmp.Or(of(of(n, "initial_session"), "state"), of(n, "initial_state")))
	case of(n, "conversation") != nil:
		for _, inv := range r.list(of(n, "conversation"), "conversation") {
			f.keepRubrics(r, inv, len(c.Turns))
			c.Turns = append(c.Turns, r.invocation(inv))
		}
		c.State = r.state(of(of(n, "session_input"), "state"))
	case of(n, "conversation_scenario") != nil:
		r.report(of(n, "conversation_scenario"), definition.CodeValue, "a model plays the user of this case, which refrain eval cannot do").
			Hint = "take the case out of the file, or write its turns as a conversation"
		return
	case of(n, "agent_data") != nil:
		c.Turns, c.State = r.agentData(of(n, "agent_data"))
	case of(n, "prompt") != nil:
		c.Turns = []Turn{{Input: r.message(of(n, "prompt"))}}
		c.State = r.state(of(of(n, "session_input"), "state"))
	}
	if len(c.Turns) == 0 {
		r.report(n, definition.CodeMissing, "the case has no message of a user")
		return
	}
	last := &c.Turns[len(c.Turns)-1]
	if ref := of(n, "reference"); ref != nil {
		last.Expected = r.reference(cmp.Or(of(ref, "response"), ref))
	}
	if uses := of(n, "expected_tool_uses"); uses != nil {
		last.Calls = r.uses(uses)
	}
	if id != nil && strings.TrimSpace(id.Value) != "" {
		c.ID = r.id(id)
	}
	f.keepRubrics(r, n, -1)
	f.add(r, n, id, c)
}

// state reads the state of a session.
func (r *reader) state(n *source.Node) map[string]any {
	if n == nil || len(n.Content) == 0 && n.Kind == source.Map {
		return nil
	}
	return r.object(n, "the state")
}

// oldTurns reads the turns {query, expected_tool_use, reference} of both old forms.
func (f *file) oldTurns(r *reader, n *source.Node) (turns []Turn) {
	for _, item := range r.list(n, "data") {
		query := of(item, "query")
		if query == nil {
			r.report(item, definition.CodeMissing, "a turn needs a query").Hint = "a turn of ADK's old form is {query, expected_tool_use, reference}"
			continue
		}
		t := Turn{Input: r.text(query, "query"), Expected: r.reference(of(item, "reference"))}
		if uses := of(item, "expected_tool_use"); uses != nil {
			t.Calls = make([]Call, 0, len(uses.Content))
			for _, u := range r.list(uses, "expected_tool_use") {
				t.Calls = append(t.Calls, r.use(u, "tool_name", "tool_input"))
			}
		}
		turns = append(turns, t)
	}
	return turns
}

// use reads one call of a tool.
func (r *reader) use(n *source.Node, name, args string) (c Call) {
	if of(n, name) == nil {
		r.report(n, definition.CodeMissing, "a call needs a %s", name)
		return c
	}
	c.Name = r.text(of(n, name), name)
	if a := of(n, args); a != nil {
		c.Args = r.object(a, args)
	}
	return c
}

// uses reads a list of function calls. The result is never nil.
func (r *reader) uses(n *source.Node) []Call {
	calls := make([]Call, 0, len(n.Content))
	for _, u := range r.list(n, "tool_uses") {
		calls = append(calls, r.use(u, "name", "args"))
	}
	return calls
}

// reference returns the text of an expected answer, a text or content; nil if it is empty.
func (r *reader) reference(n *source.Node) *string {
	var text string
	switch {
	case n == nil:
		return nil
	case n.Kind == source.Scalar:
		text = n.Value
	default:
		text, _ = contentText(n)
	}
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return r.expected(n, text)
}

// contentText returns the text of a content without thoughts, and the first part that has no text; nil if there is none.
func contentText(n *source.Node) (text string, other *source.Node) {
	for _, p := range items(of(n, "parts")) {
		switch t := of(p, "text"); {
		case t != nil && (of(p, "thought") == nil || of(p, "thought").Value != "true"):
			text += t.Value
		case t == nil && other == nil:
			other = p
		}
	}
	return text, other
}

// message reads the message of a user.
func (r *reader) message(n *source.Node) string {
	if n.Kind == source.Scalar {
		return r.text(n, "the message")
	}
	text, other := contentText(n)
	switch {
	case other != nil:
		r.report(other, definition.CodeValue, "this part of the message has no text, and only text can be sent").Hint = "take the part out of the file"
	case text == "":
		r.report(n, definition.CodeMissing, "the message of the user has no text")
	}
	return text
}

// invocation reads a turn of an EvalSet.
func (r *reader) invocation(n *source.Node) (t Turn) {
	content := of(n, "user_content")
	if content == nil {
		r.report(n, definition.CodeMissing, "an invocation needs user_content")
		return t
	}
	t.Input, t.Expected = r.message(content), r.reference(of(n, "final_response"))
	data := of(n, "intermediate_data")
	switch events := of(data, "invocation_events"); {
	case data == nil:
	case events != nil:
		t.Calls = []Call{}
		for _, ev := range r.list(events, "invocation_events") {
			for _, p := range items(of(of(ev, "content"), "parts")) {
				if call := of(p, "function_call"); call != nil {
					t.Calls = append(t.Calls, r.use(call, "name", "args"))
				}
			}
		}
	default:
		t.Calls = []Call{}
		if uses := of(data, "tool_uses"); uses != nil {
			t.Calls = r.uses(uses)
		}
	}
	return t
}

// agentData reads the turns of an EvaluationDataset: the messages of the user, and the state before the first of them.
// What the events say about answers is what some agent once did, and no reference.
func (r *reader) agentData(n *source.Node) (turns []Turn, state map[string]any) {
	for _, turn := range items(of(n, "turns")) {
		var input strings.Builder
		for _, ev := range items(of(turn, "events")) {
			if author := of(ev, "author"); author == nil || author.Value != "user" {
				continue
			}
			if delta := of(ev, "state_delta"); delta != nil && len(turns) > 0 {
				r.report(delta, definition.CodeValue, "the state can be given before the first turn only")
			} else if delta != nil {
				if state == nil {
					state = make(map[string]any)
				}
				maps.Copy(state, r.object(delta, "state_delta"))
			}
			if content := of(ev, "content"); content != nil {
				input.WriteString(r.message(content))
			}
		}
		if input.String() != "" {
			turns = append(turns, Turn{Input: input.String()})
		}
	}
	return turns, state
}

// The criteria of ADK. Those that a service of Google Cloud evaluates are refused; those that refrain does not have are
// reported as not evaluated.
const (
	trajectory = "tool_trajectory_avg_score"
	response   = "response_match_score"
	finalMatch = "final_response_match_v2"
	multiTurn  = "rubric_based_multi_turn_trajectory_quality_v1" // its rubrics are about the whole conversation
)

// rubricTypes are the criteria with rubrics, and the type of the rubrics of cases and invocations that they take.
var rubricTypes = map[string]string{
	"rubric_based_final_response_quality_v1": "FINAL_RESPONSE_QUALITY",
	"rubric_based_tool_use_quality_v1":       "TOOL_USE_QUALITY",
	multiTurn:                                "TRAJECTORY_QUALITY",
}

// The defaults of ADK's judges: the model, and how often it votes.
const (
	ADKJudge   = "gemini/gemini-2.5-flash"
	adkSamples = 5
)

var (
	unknownCriteria = []string{"hallucinations_v1", "per_turn_user_simulator_quality_v1"}
	cloudCriteria   = []string{
		"safety_v1", "response_evaluation_score", "multi_turn_task_success_v1", "multi_turn_trajectory_quality_v1", "multi_turn_tool_use_quality_v1",
	}
)

// always is a threshold that every value reaches. In a spec 0 is the default.
const always = 1e-12

// criteria reads ADK's criteria. Without a file ADK's defaults apply.
func (f *file) criteria(name string) {
	f.set.Checks = []check.Spec{{Kind: check.Calls, Name: trajectory, Min: 1}, {Kind: check.Rouge1, Name: response, Min: 0.8}}
	if _, err := fs.Stat(f.fsys, name); err != nil && f.texts[name] == nil {
		return
	}
	data, ok := f.data(name, source.MaxFile)
	if !ok {
		return
	}
	r := f.reader(name, "")
	root, faults := source.Read(bytes.NewReader(data), r.src, new(int))
	if r.faults(faults); root == nil {
		return
	}
	list := of(root, "criteria")
	if list == nil {
		return
	}
	f.set.Checks = []check.Spec{}
	pairs, _ := r.pairs(list, "criteria")
	for _, p := range pairs {
		v := source.Deref(p.Value)
		switch name := p.Key.Value; {
		case name == trajectory, name == response:
			f.set.Checks = append(f.set.Checks, r.criterion(name, v))
		case name == finalMatch:
			s := r.judgedCriterion(name, v, 0.5)
			s.Kind, s.EachTurn = check.Agrees, false
			f.set.Checks = append(f.set.Checks, s)
		case rubricTypes[name] != "":
			f.addRubrics(r.judgedCriterion(name, v, 0.8))
		case slices.Contains(unknownCriteria, name):
			f.set.Checks = append(f.set.Checks, check.Spec{Kind: check.Unsupported, Name: name,
				Text: "not evaluated: refrain eval does not have this criterion; write a rubric for it"})
		case slices.Contains(cloudCriteria, name):
			r.report(p.Key, definition.CodeValue, "%s is computed by a service of Google Cloud, which refrain does not call", name).
				Hint = "take it out of " + ADKCriteria + ", and use agents-cli for it"
		default:
			r.report(p.Key, definition.CodeField, "there is no criterion %q", name).
				Hint = suggest.Hint(name, slices.Concat([]string{trajectory, response, finalMatch}, slices.Sorted(maps.Keys(rubricTypes)), unknownCriteria))
		}
	}
}

// threshold reads the least value of a criterion: a number, or the field of a map.
func (r *reader) threshold(name string, n *source.Node, least float64) float64 {
	if n.Kind == source.Map {
		n = of(n, "threshold")
	}
	if n == nil {
		return least
	}
	if least = max(r.number(n, name, 0, false), always); least > 1 {
		r.report(n, definition.CodeValue, "the threshold of %s must be at most 1, got %s", name, n.Value)
	}
	return least
}

// judgedCriterion reads a criterion that asks a judge, with its rubrics, if it has any.
func (r *reader) judgedCriterion(name string, n *source.Node, least float64) check.Spec {
	s := check.Spec{Kind: check.Rubric, Name: name, Min: r.threshold(name, n, least), Model: ADKJudge, Samples: adkSamples, EachTurn: name != multiTurn, Whole: name == multiTurn}
	options := of(n, "judge_model_options")
	if m := of(options, "judge_model"); m != nil {
		if s.Model = r.text(m, "judge_model"); !strings.Contains(s.Model, "/") {
			s.Model = "gemini/" + s.Model
		}
	}
	if m := of(options, "num_samples"); m != nil {
		s.Samples = int(r.whole(m, "num_samples", 1, check.MaxSamples))
	}
	s.Texts = r.rubrics(of(n, "rubrics"), "")
	return s
}

// rubrics reads a list of rubrics: those of a type, or all if the type is empty.
func (r *reader) rubrics(n *source.Node, kind string) (texts []string) {
	for _, item := range items(n) {
		if t := of(item, "type"); kind != "" && (t == nil || t.Value != kind) {
			continue
		}
		content := of(item, "rubric_content")
		if text := of(content, "text_property"); text != nil {
			content = text
		}
		if content == nil {
			r.report(item, definition.CodeMissing, "a rubric needs rubric_content with a text_property")
			continue
		}
		texts = append(texts, r.text(content, "text_property"))
	}
	return texts
}

// addRubrics adds a criterion with rubrics to the checks of each case that has rubrics: those of the criterion and those of its own type
// of the case. The rubrics of an invocation are a check of its turn.
func (f *file) addRubrics(s check.Spec) {
	for i := range f.set.Cases {
		c := &f.set.Cases[i]
		add := func(to *[]check.Spec, texts []string) {
			if one := s; len(texts) > 0 {
				one.Texts = texts
				*to = append(*to, one)
			}
		}
		kind := rubricTypes[s.Name]
		add(&c.Checks, slices.Concat(s.Texts, f.rubrics[rubricsOf{kind, i, -1}]))
		for k := range c.Turns {
			add(&c.Turns[k].Checks, f.rubrics[rubricsOf{kind, i, k}])
		}
	}
}

// rubricsOf names the rubrics of one type of a case, or of one of its turns. A turn of -1 is the case.
type rubricsOf struct {
	kind        string
	place, turn int
}

// keepRubrics reads the rubrics of the next case, or of one of its turns, until a criterion needs them.
func (f *file) keepRubrics(r *reader, n *source.Node, turn int) {
	for _, kind := range rubricTypes {
		if texts := r.rubrics(of(n, "rubrics"), kind); texts != nil {
			f.rubrics[rubricsOf{kind, len(f.set.Cases), turn}] = texts
		}
	}
}

// criterion reads one of the two criteria that need no model: a threshold, or a map with a threshold and settings.
func (r *reader) criterion(name string, n *source.Node) check.Spec {
	s := check.Spec{Kind: check.Rouge1, Name: name, Min: 0.8}
	if name == trajectory {
		s.Kind, s.Min = check.Calls, 1
	}
	s.Min = r.threshold(name, n, s.Min)
	if name != trajectory || n.Kind != source.Map {
		return s
	}
	if args := of(n, "ignore_args"); args != nil {
		s.IgnoreArgs = r.boolean(args, "ignore_args")
	}
	if match := of(n, "match_type"); match != nil {
		orders := map[string]check.Order{"EXACT": check.Exact, "IN_ORDER": check.InOrder, "ANY_ORDER": check.AnyOrder,
			"0": check.Exact, "1": check.InOrder, "2": check.AnyOrder}
		order, ok := orders[strings.ToUpper(match.Value)]
		if s.Order = order; !ok {
			r.report(match, definition.CodeValue, "match_type cannot be %q", match.Value).Hint = "there are EXACT, IN_ORDER, ANY_ORDER"
		}
	}
	return s
}
