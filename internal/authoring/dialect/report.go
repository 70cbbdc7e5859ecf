// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Kind says whether a field was carried over.
type Kind string

// The kinds of items, in ascending order of severity.
const (
	Mapped  Kind = "mapped"  // means the same here, perhaps under another name
	Changed Kind = "changed" // carried over, but not exactly as it was
	Dropped Kind = "dropped" // not carried over, because the other format has no equivalent
	Failed  Kind = "error"   // ambiguous or impossible
)

// Item is the result for one field.
type Item struct {
	Kind Kind `json:"kind"`
	// File, Line and Column are the position of the field; Line is 0 for the whole file.
	File   string `json:"file,omitzero"`
	Line   int    `json:"line,omitzero"`
	Column int    `json:"column,omitzero"`
	// Agent is the agent's name in the file; empty if the item is about no agent.
	Agent string `json:"agent,omitzero"`
	// Field is the field in the file, To its name in the other format if it differs.
	Field string `json:"field,omitzero"`
	To    string `json:"to,omitzero"`
	// Message gives the reason; empty for a field that is carried over unchanged.
	Message string `json:"message,omitzero"`
	// Advice says what to do instead.
	Advice string `json:"advice,omitzero"`
}

// Report lists the results of an import or an export.
type Report struct {
	Dialect Dialect `json:"dialect"`
	// Export reports whether the definition was written in the dialect, and not read from it.
	Export bool   `json:"export,omitzero"`
	File   string `json:"file"`
	// Name is the name of the definition, and Agents the number of its agents.
	Name   string `json:"name,omitzero"`
	Agents int    `json:"agents,omitzero"`
	Items  []Item `json:"items"`
	// Problems has the problems of the converted definition, with positions, lines and hints for the imported file. A
	// definition whose problems are all warnings can run.
	Problems definition.Problems `json:"problems,omitzero"`
}

// Count returns the number of items of a kind, where identical items of several agents are one, as [Report.Format] writes
// them. Errors of the converted definition count as Failed.
func (r *Report) Count(k Kind) int {
	n := 0
	for i := range r.Items {
		if k == Mapped && r.Items[i].Kind == k {
			n++
		}
	}
	for _, it := range r.told() {
		if it.Kind == k {
			n++
		}
	}
	if k == Failed {
		for _, p := range r.Problems {
			if p.Severity == definition.SeverityError {
				n++
			}
		}
	}
	return n
}

// Format writes the report for people: one line for each agent with the fields that were carried over, and then the
// other items with their places. Identical items of several agents are on one line, at the place of the first. The
// error is that of w.
func (r *Report) Format(w io.Writer) error {
	var b strings.Builder
	for _, line := range r.mapped() {
		b.WriteString(line)
	}
	for _, it := range r.told() {
		b.WriteString(it.format())
	}
	for _, p := range r.Problems {
		b.WriteString(p.Format())
	}
	b.WriteString(brief.Printable(r.Summary()) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// told returns the items that are not mapped, with identical items of several agents as one.
func (r *Report) told() []*Item {
	var list []*Item
	first := make(map[Item]*Item)
	for i := range r.Items {
		it := r.Items[i]
		if it.Kind == Mapped {
			continue
		}
		same := Item{Kind: it.Kind, Field: it.Field, To: it.To, Message: it.Message, Advice: it.Advice}
		if before := first[same]; before != nil && it.Kind == Dropped && it.Agent != "" {
			if !slices.Contains(strings.Split(before.Agent, ", "), it.Agent) {
				before.Agent += ", " + it.Agent
			}
			continue
		}
		first[same] = &it
		list = append(list, &it)
	}
	return list
}

// Summary returns one line: the source, the result, and the number of fields of each kind.
func (r *Report) Summary() string {
	from, to := r.Dialect.Title(), "definition"
	if r.Export {
		from, to = to, from
	}
	s := r.File + ": " + from
	if r.Agents > 0 {
		s += fmt.Sprintf(" → %s %s (%s)", to, r.Name, brief.Count(r.Agents, "agent"))
	}
	s += fmt.Sprintf(": %d carried over, %d changed, %d left out", r.Count(Mapped), r.Count(Changed), r.Count(Dropped))
	if n := r.Count(Failed); n > 0 {
		s += ", " + brief.Count(n, "error")
	}
	return s
}

// mapped returns one line for each agent, in the order of the items.
func (r *Report) mapped() []string {
	var order []string
	fields := make(map[string][]string)
	for i := range r.Items {
		it := &r.Items[i]
		if it.Kind != Mapped {
			continue
		}
		if fields[it.Agent] == nil {
			order = append(order, it.Agent)
		}
		text := it.Field
		if it.To != "" {
			text += " → " + it.To
		}
		if it.Message != "" {
			text += " (" + it.Message + ")"
		}
		if !slices.Contains(fields[it.Agent], text) {
			fields[it.Agent] = append(fields[it.Agent], text)
		}
	}
	lines := make([]string, 0, len(order))
	for _, name := range order {
		who := name
		if who == "" {
			who = r.File
		}
		lines = append(lines, brief.Printable("carried over: "+who+": "+strings.Join(fields[name], ", "))+"\n")
	}
	return lines
}

// words has the names of the kinds for people.
var words = map[Kind]string{Changed: "changed", Dropped: "left out", Failed: "error"}

func (it *Item) format() string {
	var b strings.Builder
	b.WriteString(brief.Printable(it.File))
	if it.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", it.Line, it.Column)
	}
	b.WriteString(": " + words[it.Kind] + ": ")
	if it.Agent != "" {
		b.WriteString(brief.Printable(it.Agent) + ": ")
	}
	if it.Field != "" && it.Kind != Failed {
		b.WriteString(brief.Printable(it.Field))
		if it.To != "" {
			b.WriteString(" → " + brief.Printable(it.To))
		}
		b.WriteString(": ")
	}
	b.WriteString(brief.Printable(it.Message) + "\n")
	if it.Advice != "" {
		b.WriteString("      | " + brief.Printable(it.Advice) + "\n")
	}
	return b.String()
}

// place is a position in a file.
type place = definition.Position

// maxItems limits the items of a report. Further items are dropped, except the first error.
const maxItems = 5000

func (i *importer) add(k Kind, at place, agent, field, to, message string) *Item {
	it := Item{
		Kind: k, File: at.File, Line: at.Line, Column: at.Column, Agent: agent, Field: field, To: to, Message: message,
	}
	if k == Failed {
		i.failed++
	}
	if len(i.report.Items) >= maxItems && (k != Failed || i.failed > 1) {
		return &it
	}
	i.report.Items = append(i.report.Items, it)
	return &i.report.Items[len(i.report.Items)-1]
}

// mapped adds an item for a field that means the same here.
func (i *importer) mapped(at place, agent, field, to string) {
	if to == field {
		to = ""
	}
	i.add(Mapped, at, agent, field, to, "")
}

func (i *importer) changed(at place, agent, field, to, format string, args ...any) *Item {
	return i.add(Changed, at, agent, field, to, fmt.Sprintf(format, args...))
}

func (i *importer) dropped(at place, agent, field, advice, format string, args ...any) {
	i.add(Dropped, at, agent, field, "", fmt.Sprintf(format, args...)).Advice = advice
}

func (i *importer) fail(at place, agent, field, format string, args ...any) *Item {
	return i.add(Failed, at, agent, field, "", fmt.Sprintf(format, args...))
}

// hints has the advice for a problem of the definition that helps in the imported file. If the product has no
// equivalent, the hint says so, and says what to write in the definition.
var hints = map[Dialect]map[string]string{
	ADK: {
		definition.CodeEndless: "give the LoopAgent max_iterations, or an agent in it tools: [{name: exit_loop}]; refrain import makes a file in which stop_when and timeout can be written",
		definition.CodeAnyone:  "give tools: [{name: exit_loop}] to the agent that decides",
		definition.CodeModel:   "write model: as ADK knows it, such as gemini-2.5-flash or openai/gpt-4.1-mini; doc/models.md lists the providers",
	},
	Evo: {
		definition.CodeEndless: "give the loop max_iterations, or name an agent in it in agents_exit_loop; refrain import makes a file in which stop_when and timeout can be written",
		definition.CodeAnyone:  "name the agent that decides in the loop's agents_exit_loop",
		definition.CodeModel:   "write model as provider/name, such as gemini/gemini-2.0-flash; doc/models.md lists the providers",
	},
	Robomotion: {
		definition.CodeEndless: "give the Loop Agent Max Iterations or a Timeout",
		definition.CodeAnyone:  "no option of the node says who ends the loop; refrain import makes a file in which can_exit_loop or stop_when can be written",
		definition.CodeModel:   "choose the model in the LLM Agent as provider/name; doc/models.md lists the providers",
	},
}

// hint returns the advice for a problem in the file, or "" if there is none.
func (i *importer) hint(p *definition.Problem) string {
	if h := hints[i.opts.Dialect][p.Code]; h != "" || p.Hint == "" {
		return h
	}
	return "in a definition, which refrain import makes: " + p.Hint
}
