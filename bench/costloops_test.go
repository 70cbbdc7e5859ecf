// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/process/keeper"
	"github.com/refrain-dev/refrain/internal/text/template"
)

// costLoop is a loop as all frameworks run it. Ours runs the definition, if there is one; the others run the steps.
type costLoop struct {
	name    string
	message string
	def     *definition.Definition
	given   map[string]string // inputs of the definition
	root    *costStep
	state   map[string]any // of the others, in the beginning
	said    said
}

// costStep is a loop or a sequence if it has steps; otherwise an agent with a model, if it has an instruction;
// otherwise a function.
type costStep struct {
	name, description string
	steps             []*costStep
	iterations        int // of a loop; 0 makes it a sequence
	instruction       *template.Template
	key               string
	tool              string                                                        // that the agent has; exitTool ends the loop
	do                func(get func(string) any, set func(string, any)) (exit bool) // of a function
}

// The tools of the loops.
const (
	exitTool = "exit"
	lookTool = "look"
)

var seen = strings.Repeat("What is to be seen there. ", 8) // the result of lookTool

const lookAbout = "Looks at a place, and returns what is to be seen there."

// prose returns so many words, which begin with what and are others for each number.
func prose(what string, n, words int) keeper.Answer {
	list := strings.Fields("a cat that sleeps on books in the old library dreams of words and wakes with one more each morning")
	text := []string{what, fmt.Sprint(n)}
	for i := 2; i < words; i++ {
		text = append(text, list[(i*(n+3)+n)%len(list)])
	}
	return keeper.Answer{Text: strings.Join(text, " ")}
}

func exits() keeper.Answer { return keeper.Answer{Call: exitTool, Arguments: "{}"} }

func exampleOf(t *testing.T, name string) *definition.Definition {
	t.Helper()
	def, err := definition.Load("../examples/" + name + "/loop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return def
}

// asks is the step of a definition's agent with a model.
func asks(t *testing.T, def *definition.Definition, name string) *costStep {
	t.Helper()
	for a := range def.Root.All {
		if a.Name == name {
			tmpl, err := template.Parse(a.LLM.Instructions, template.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := &costStep{name: name, description: a.Description, instruction: tmpl, key: a.OutputKey}
			if a.CanExitLoop {
				s.tool = exitTool
			}
			return s
		}
	}
	t.Fatalf("there is no agent %q", name)
	return nil
}

func costLoops(t *testing.T) []costLoop {
	return []costLoop{toolLoop(t), documentLoop(t), codefixLoop(t), negotiateLoop(t), nestedLoop(t)}
}

// toolLoop is an agent with instructions of 2,400 tokens that calls a tool 38 times.
func toolLoop(t *testing.T) costLoop {
	tmpl, err := template.Parse(strings.Repeat("Look twice. ", 800), template.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := costLoop{name: "tool loop", message: "What is there?", said: said{},
		root: &costStep{name: "looker", description: "Looks around.", instruction: tmpl, tool: lookTool}}
	for i := range 38 {
		l.said["looker"] = append(l.said["looker"], keeper.Answer{Call: lookTool, Arguments: fmt.Sprintf(`{"place":"shelf %d"}`, i)})
	}
	l.said["looker"] = append(l.said["looker"], prose("There is", 1, 100))
	return l
}

// documentLoop writes a document of 500 words and improves it four times.
func documentLoop(t *testing.T) costLoop {
	def := exampleOf(t, "document")
	l := costLoop{name: "document", message: "Write a document about a cat", def: def, state: map[string]any{},
		said: said{"InitialWriterAgent": {prose("Draft", 0, 500)}}}
	l.root = &costStep{name: "IterativeWriter", steps: []*costStep{asks(t, def, "InitialWriterAgent"),
		{name: "RefinementLoop", iterations: 5, steps: []*costStep{asks(t, def, "CriticAgent"), asks(t, def, "RefinerAgent")}}}}
	for i := range 4 {
		l.said["CriticAgent"] = append(l.said["CriticAgent"], prose("Better would be", i, 80))
		l.said["RefinerAgent"] = append(l.said["RefinerAgent"], prose("Draft", i+1, 500))
	}
	l.said["CriticAgent"] = append(l.said["CriticAgent"], keeper.Answer{Text: "No major issues found."})
	l.said["RefinerAgent"] = append(l.said["RefinerAgent"], exits())
	return l
}

// codefixLoop repairs a file of 700 words in four versions, with tests of the same length. What gofmt, go vet and go
// test say is always the same.
func codefixLoop(t *testing.T) costLoop {
	def := exampleOf(t, "codefix")
	dir, file, tests, report := codefixFiles(t)
	l := costLoop{name: "codefix", message: "Repair it.", def: def, given: map[string]string{"dir": dir},
		state: map[string]any{"file": "slug.go", "current_code": file, "tests": tests}, said: said{}}
	pipeline := &costStep{name: "pipeline", do: func(_ func(string) any, set func(string, any)) bool {
		set("test_results", report)
		return false
	}}
	best := &costStep{name: "best", do: func(get func(string) any, set func(string, any)) bool {
		set("best", map[string]any{"current_code": get("current_code"), "test_results": report, "analysis": "{}"})
		return false
	}}
	l.root = &costStep{name: "codefix", steps: []*costStep{
		{name: "development", iterations: 6, steps: []*costStep{asks(t, def, "code_generator"), pipeline, asks(t, def, "verifier")}},
		best, asks(t, def, "deliverer")}}
	for i := range 4 {
		l.said["code_generator"] = append(l.said["code_generator"], prose("package slug // version", i, 700))
		l.said["verifier"] = append(l.said["verifier"], prose("Repair first", i, 30))
	}
	l.said["verifier"][3] = exits()
	l.said["deliverer"] = []keeper.Answer{prose("It is done", 1, 40)}
	return l
}

// negotiateLoop needs six rounds, with 60 words each time.
func negotiateLoop(t *testing.T) costLoop {
	def := exampleOf(t, "negotiate")
	l := costLoop{name: "negotiate", message: "Negotiate.", def: def, said: said{},
		state: map[string]any{"thing": "500 chairs, delivered to a school", "lowest": 70, "highest": 90}}
	settle := &costStep{name: "settle", do: func(get func(string) any, set func(string, any)) bool {
		var minutes struct {
			Consensus bool
			Open      string
		}
		text, _ := get("minutes").(string)
		if err := json.Unmarshal([]byte(text), &minutes); err != nil {
			panic(err)
		}
		set("open", minutes.Open)
		return minutes.Consensus
	}}
	l.root = &costStep{name: "negotiate", iterations: 6, steps: []*costStep{
		asks(t, def, "supplier"), asks(t, def, "buyer"), asks(t, def, "clerk"), settle}}
	for i := range 6 {
		l.said["supplier"] = append(l.said["supplier"], prose("I offer", i, 60))
		l.said["buyer"] = append(l.said["buyer"], prose("I would take", i, 60))
		minutes := fmt.Sprintf(`{"consensus":%t,"price":%d,"terms":"In three weeks.","open":%q}`, i == 5, 80+i, prose("Who", i, 15).Text)
		l.said["clerk"] = append(l.said["clerk"], keeper.Answer{Text: minutes})
	}
	return l
}

// nestedLoop tells six chapters, each in three versions, until it has at most 150 words.
func nestedLoop(t *testing.T) costLoop {
	def := exampleOf(t, "nested")
	l := costLoop{name: "nested", message: "A cat that learns to read", def: def, said: said{},
		given: map[string]string{"chapters": "6", "most": "150"},
		state: map[string]any{"told": []any{}, "chapters": 6, "most": 150, "user_input": "A cat that learns to read"}}
	begin := &costStep{name: "begin", do: func(get func(string) any, set func(string, any)) bool {
		set("chapter", len(get("told").([]any))+1)
		set("is_first_iteration", true)
		return false
	}}
	count := &costStep{name: "count", do: func(get func(string) any, set func(string, any)) bool {
		words := len(strings.Fields(get("text").(string)))
		set("words", words)
		set("is_first_iteration", false)
		return words <= 150
	}}
	keep := &costStep{name: "keep", do: func(get func(string) any, set func(string, any)) bool {
		told := append(get("told").([]any)[:len(get("told").([]any)):len(get("told").([]any))], get("text"))
		set("told", told)
		return len(told) >= 6
	}}
	l.root = &costStep{name: "story", iterations: 10, steps: []*costStep{begin,
		{name: "tell", iterations: 5, steps: []*costStep{asks(t, def, "narrator"), count}}, keep}}
	for i := range 6 {
		for j, words := range []int{300, 220, 140} {
			l.said["narrator"] = append(l.said["narrator"], prose("Once", 3*i+j, words))
		}
	}
	return l
}
