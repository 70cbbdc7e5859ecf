// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/authoring/rehearsal/internal/study"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Format writes the report for people: the stand-ins, how the loops end without faults, and the guard that caught
// each fault.
func (r *Report) Format(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, rehearsed with stand-ins: no model was called, no command ran, nothing was sent\n", r.Name)
	r.cast(&b)
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "  %s\n", brief.Clean(n))
	}
	if len(r.Endings) > 0 {
		b.WriteString("\nNothing goes wrong\n")
		for _, e := range r.Endings {
			fmt.Fprintf(&b, "  %s\n", brief.Clean(e.String()))
		}
	}
	if err := r.simulations(&b); err != nil {
		return err
	}
	fmt.Fprintf(&b, "\nThings go wrong, and each step takes %s\n", brief.Clock(r.StepTime))
	r.table(&b)
	r.advice(&b)
	r.sum(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// simulations writes what the stop rules do to the courses.
func (r *Report) simulations(b *strings.Builder) error {
	if len(r.Simulations) == 0 {
		return nil
	}
	fmt.Fprintf(b, "\nWhat the stop rules do to six courses, in %d simulated runs each, without a target or other conditions\n", r.Simulations[0].Runs)
	for i := range r.Simulations {
		if err := r.Simulations[i].Format(b); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(r.Simulations, func(s Simulation) bool { return s.Note == "" }) {
		b.WriteString("  Good rules seldom stop a course that still gains, and stop a flat one soon; samples, patience and min_delta decide.\n")
	}
	return nil
}

// cast lists the stand-ins by kind.
func (r *Report) cast(b *strings.Builder) {
	kinds := []struct{ kind, words string }{
		{"model", "a scripted model answers for"}, {"command", "commands that did not run:"}, {"cli", "coding agents that were not asked:"}, {"http", "requests that were not sent:"},
		{"a2a", "remote agents that were not called:"}, {"mcp", "servers of tools that were not started, of"},
		{"func", "Go functions and agents that were not called:"}, {"human", "people who were not asked:"},
		{"callbacks", "callbacks that were not called, of"},
	}
	var known []string
	for _, k := range kinds {
		known = append(known, k.kind)
		r.list(b, k.words, func(s StandIn) bool { return s.Kind == k.kind })
	}
	r.list(b, "others that were not asked:", func(s StandIn) bool { return !slices.Contains(known, s.Kind) })
}

func (r *Report) list(b *strings.Builder, words string, which func(StandIn) bool) {
	var names []string
	for _, s := range r.StandIns {
		if which(s) && !slices.Contains(names, s.Agent) {
			names = append(names, s.Agent)
		}
	}
	if len(names) > 0 {
		fmt.Fprintf(b, "  %s %s\n", words, brief.Clean(strings.Join(names, ", ")))
	}
}

// String describes the ending in words.
func (e Ending) String() string {
	end := fmt.Sprintf("%s after %s", e.Reason, brief.Count(e.Iterations, "iteration"))
	switch {
	case e.Way == "" && e.Reached:
		return fmt.Sprintf("%s ends by its limits: %s", e.Loop, end)
	case e.Reached:
		return fmt.Sprintf("%s ends by %s: %s", e.Loop, e.Way, end)
	case !e.Known:
		return fmt.Sprintf("%s by %s: not known, stand-ins do not reach it (%s)", e.Loop, study.Way{Name: e.Way},
			e.Detail)
	}
	return fmt.Sprintf("%s does not end by %s: %s", e.Loop, study.Way{Name: e.Way}, e.Detail)
}

// row is a line of the table, with the lines below it.
type row struct {
	fault, where, by, below string
}

// rows returns the findings, and merges those that do not apply for the same reason.
func (r *Report) rows() []row {
	var all []row
	seen := make(map[string]int)
	for i := range r.Findings {
		f := &r.Findings[i]
		where := f.Loop
		if where == "" {
			where = "the run"
			if len(f.Steps) > 0 {
				where = "outside of loops"
			}
		}
		line := row{fault: f.Fault.String(), where: where, by: f.Guard, below: f.Detail}
		if len(f.Steps) > 0 {
			line.below = strings.Join(f.Steps, ", ") + ": " + f.Detail
		}
		switch f.Status {
		case Uncaught:
			line.by = "NOTHING"
		case Spared, Unknown:
			line.by, line.below = "– "+f.Detail, ""
			if f.Status == Unknown {
				line.by = "not known: " + f.Detail
			}
			if n, again := seen[line.fault+line.by]; again {
				all[n].where += ", " + where
				continue
			}
			seen[line.fault+line.by] = len(all)
		}
		all = append(all, line)
	}
	return all
}

// widest limits the width of the column of places.
const widest = 30

// table writes a line for each finding, and what happens below it.
func (r *Report) table(b *strings.Builder) {
	rows := append([]row{{fault: "fault", where: "where", by: "caught by"}}, r.rows()...)
	var faults, places int
	for i := range rows {
		l := &rows[i]
		l.where, l.by, l.below = brief.Clean(l.where), brief.Clean(l.by), brief.Clean(l.below)
		faults = max(faults, utf8.RuneCountInString(l.fault))
		if n := utf8.RuneCountInString(l.where); n <= widest {
			places = max(places, n)
		}
	}
	for _, l := range rows {
		fmt.Fprintf(b, "  %-*s  %-*s  %s\n", faults, l.fault, places, l.where, l.by)
		if l.below != "" {
			fmt.Fprintf(b, "    %s\n", l.below)
		}
	}
}

// advice lists the fields to add to the file.
func (r *Report) advice(b *strings.Builder) {
	for _, part := range []struct {
		status Status
		title  string
	}{
		{Uncaught, "Not caught, and what to add"}, {Unknown, "What is not known"}, {Caught, "Caught late, and what to add"},
	} {
		begun, last := false, ""
		for i := range r.Findings {
			f := &r.Findings[i]
			if f.Status != part.status || f.Advice == "" || f.Status == Unknown && f.Advice == last {
				continue
			}
			last = f.Advice
			if !begun {
				fmt.Fprintf(b, "\n%s\n", part.title)
				begun = true
			}
			if f.Status == Unknown {
				fmt.Fprintf(b, "  %s\n", brief.Clean(f.Advice))
				continue
			}
			fmt.Fprintf(b, "  %s: %s\n", f.Fault, brief.Clean(f.Advice))
		}
	}
}

func (r *Report) sum(b *strings.Builder) {
	n := make(map[Status]int)
	for _, f := range r.Findings {
		n[f.Status]++
	}
	fmt.Fprintf(b, "\n%d caught, %d uncaught, ", n[Caught], n[Uncaught])
	if n[Unknown] > 0 {
		fmt.Fprintf(b, "%d not known, ", n[Unknown])
	}
	fmt.Fprintf(b, "%d do not apply\n", n[Spared])
	fmt.Fprintf(b, "Times are computed, not measured: each step counts as %s (--step-time). seed=%d\n",
		brief.Clock(r.StepTime), r.Seed)
}
