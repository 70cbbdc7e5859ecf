// SPDX-License-Identifier: Apache-2.0

package rehearsal

import (
	"context"
	"time"

	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/loop"
)

// Fault is a kind of fault.
type Fault string

// The faults, in the order of a report.
const (
	NeverExits       Fault = "never_exits"        // nothing that the loop waits for comes true
	NoisyJudge       Fault = "noisy_judge"        // the score varies, and the work does not
	ImprovesSlowly   Fault = "improves_slowly"    // every version is better by half of what the judge is off by
	JudgeInWords     Fault = "judge_in_words"     // the judge answers in words, without a number
	NotANumber       Fault = "not_a_number"       // from the second iteration on the score is not a number
	ScoresRegress    Fault = "scores_regress"     // it gets better, and then worse and worse
	Oscillation      Fault = "oscillation"        // two results in turns
	StepHung         Fault = "step_hung"          // a step says nothing, for ever
	ProviderHiccup   Fault = "provider_hiccup"    // one request fails, and the next would not
	ProviderDown     Fault = "provider_down"      // all requests fail from the second iteration on
	ExitNotPermitted Fault = "exit_not_permitted" // a step that has no permission ends the loop
	StateGrows       Fault = "state_grows"        // every iteration leaves more in the state
	CostsExplode     Fault = "costs_explode"      // every request takes twice the tokens of the one before
	Crash            Fault = "crash"              // the process dies, at every event of the log
)

// faults lists all faults in the order of a report, each with its description and the function that injects it.
var faults = []struct {
	fault  Fault
	words  string
	inject func(*bench, context.Context) ([]Finding, error)
}{
	{NeverExits, "never exits", (*bench).neverExits},
	{NoisyJudge, "noisy judge", (*bench).noisyJudge},
	{ImprovesSlowly, "improves slowly", (*bench).improvesSlowly},
	{JudgeInWords, "judge in words", (*bench).judgeInWords},
	{NotANumber, "not a number", (*bench).notANumber},
	{ScoresRegress, "scores regress", (*bench).scoresRegress},
	{Oscillation, "oscillating outputs", (*bench).oscillation},
	{StepHung, "step hung", (*bench).stepHung},
	{ProviderHiccup, "provider hiccup", (*bench).providerHiccup},
	{ProviderDown, "provider down", (*bench).providerDown},
	{ExitNotPermitted, "exit not permitted", (*bench).exitNotPermitted},
	{StateGrows, "state grows", (*bench).stateGrows},
	{CostsExplode, "costs explode", (*bench).costsExplode},
	{Crash, "crash at any event", (*bench).crash},
}

// Faults lists all faults, in the order of a report.
func Faults() []Fault {
	var all []Fault
	for _, f := range faults {
		all = append(all, f.fault)
	}
	return all
}

// String describes the fault in words.
func (f Fault) String() string {
	for _, known := range faults {
		if known.fault == f {
			return known.words
		}
	}
	return string(f)
}

// Status says whether a fault was caught.
type Status string

// The results of a fault.
const (
	Caught   Status = "caught"         // a guard has caught it
	Uncaught Status = "uncaught"       // none has
	Spared   Status = "does_not_apply" // it cannot happen here
	Unknown  Status = "not_known"      // stand-ins do not get so far
)

// Finding is the result of one fault at one place.
type Finding struct {
	Fault  Fault  `json:"fault"`
	Status Status `json:"status"`
	// Loop is the loop with the fault, Steps are the agents that it affects; both may be empty.
	Loop  string   `json:"loop,omitzero"`
	Steps []string `json:"steps,omitzero"`
	// Guard is the guard that caught the fault, such as "max_iterations: 5"; empty if none did.
	Guard string `json:"guard,omitzero"`
	// Detail says what happens, or why the fault cannot happen; Advice says what to add to the
	// file.
	Detail string `json:"detail"`
	Advice string `json:"advice,omitzero"`
	// Add is the advice as fields, for programs: with all of them in the file the fault is caught,
	// or caught sooner.
	Add []Fix `json:"add,omitzero"`
	// Stop is why the loop stopped; nil if it did not.
	Stop *loop.StopRecord `json:"stop,omitzero"`
	// Points is the number of events at which a run was cut off, Differ the number of those after
	// which the resumed run differed.
	Points int `json:"points,omitzero"`
	Differ int `json:"differ,omitzero"`
}

// Ending is one way in which a loop should end, and whether it does.
type Ending struct {
	Loop string `json:"loop"`
	// Way is the criterion: "exit_loop by critic", "score.target", "stop_when". It is empty for a
	// loop that has only limits.
	Way string `json:"way,omitzero"`
	// Reached says that the loop ended in this way; Reason and Iterations say how it ended. Known
	// is false if stand-ins could not reach it, although the real agents may.
	Reached    bool            `json:"reached"`
	Known      bool            `json:"known"`
	Reason     loop.StopReason `json:"reason,omitzero"`
	Iterations int             `json:"iterations,omitzero"`
	Detail     string          `json:"detail,omitzero"`
}

// StandIn describes an agent or a tool that was replaced.
type StandIn struct {
	Agent string `json:"agent"`
	// Kind is the kind of the real agent or tool: "model", "command", "cli", "http", "a2a", "human", "mcp", "func";
	// or "callbacks", which are not called at all.
	Kind string `json:"kind"`
}

// Report is the result of a rehearsal. It depends only on the definition and the config.
type Report struct {
	Name     string        `json:"name"`
	Seed     uint64        `json:"seed"`
	StepTime time.Duration `json:"step_time_ns"` // that a step is supposed to take
	StandIns []StandIn     `json:"stand_ins"`
	// Notes concern the rehearsal itself, such as inputs that were made up.
	Notes    []string  `json:"notes,omitzero"`
	Endings  []Ending  `json:"endings"`
	Findings []Finding `json:"findings"`
	// Simulations say what the stop rules do to six courses of the score, for each loop with a noisy judge. They are there if
	// all faults are injected.
	Simulations []Simulation `json:"simulations,omitzero"`
}

// Open lists the findings that no guard has caught, and those whose result is unknown.
func (r *Report) Open() []Finding {
	var all []Finding
	for _, f := range r.Findings {
		if f.Status == Uncaught || f.Status == Unknown {
			all = append(all, f)
		}
	}
	return all
}

// Fix is a field to add or change, so that a fault is caught.
type Fix = prose.Fix

// fix adds a field to a finding. more names an alternative, or explains the field.
func (f *Finding) fix(agent, field, value, more string) {
	one := Fix{Agent: agent, Field: field, Value: value}
	f.Add, f.Advice = []Fix{one}, one.String()+more
}
