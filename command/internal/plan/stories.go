// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// story is a user story of a prd.json.
type story struct {
	ID                 string   `json:"id"`
	Title              string   `json:"title"`
	Description        string   `json:"description"`
	AcceptanceCriteria []string `json:"acceptanceCriteria"`
	Priority           float64  `json:"priority"`
	Notes              string   `json:"notes"`
}

// parseStories reads a prd.json. The order is that of the priorities, the smallest first.
func parseStories(text string) (*Plan, error) {
	var file struct {
		Project, BranchName, Description string
		UserStories                      []json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		return nil, fmt.Errorf("read the plan as JSON: %w", err)
	}
	p := &Plan{text: text, Branch: file.BranchName, Context: strings.TrimSpace(file.Project + "\n\n" + file.Description)}
	type ranked struct {
		Task
		priority float64
	}
	var all []ranked
	at := 0
	for i, raw := range file.UserStories {
		start := strings.Index(text[at:], string(raw)) + at // a RawMessage has the bytes of the text
		at = start + len(raw)
		var s story
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, fmt.Errorf("read story %d of the plan: %w", i+1, err)
		}
		t := Task{Title: plainTitle(s.ID + " " + s.Title), Mark: Open}
		if t.Title == "" {
			return nil, fmt.Errorf("story %d of the plan has no title; give it one", i+1)
		}
		offset, value := passesIn(string(raw))
		if t.boxes, t.value = []int{start + offset}, value; value == "true" {
			t.Mark = Done
		}
		t.Text = t.Title + "\n\n" + s.Description
		for _, c := range s.AcceptanceCriteria {
			t.Text += "\n- " + c
		}
		t.Text = strings.TrimSpace(t.Text + "\n\n" + s.Notes)
		all = append(all, ranked{t, s.Priority})
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(a.priority, b.priority) })
	for _, t := range all {
		p.Tasks = append(p.Tasks, t.Task)
	}
	return p, nil
}

// passesIn returns where the value of passes stands in a story. Without one it returns the place behind the brace, and "".
func passesIn(story string) (offset int, value string) {
	d := json.NewDecoder(strings.NewReader(story))
	if _, err := d.Token(); err != nil {
		return 0, ""
	}
	for first := int(d.InputOffset()); ; {
		key, err := d.Token()
		if name, ok := key.(string); err != nil || !ok {
			return first, ""
		} else if name == "passes" {
			before := int(d.InputOffset())
			var v json.RawMessage
			if d.Decode(&v) != nil {
				return first, ""
			}
			return before + strings.Index(story[before:], string(v)), string(v)
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return first, ""
		}
	}
}

// storyValue returns the text in place of the value of passes. JSON has no mark for a task that failed.
func storyValue(value string, m Mark) string {
	switch {
	case m != Done:
		return value
	case value == "":
		return `"passes": true, `
	}
	return "true"
}
