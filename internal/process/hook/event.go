// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"slices"
	"strings"
	"time"
)

// Point is a point of a run at which hooks are called.
type Point string

// The points, in the order of a run.
const (
	BeforeRun       Point = "before_run"
	BeforeAgent     Point = "before_agent"
	BeforeIteration Point = "before_iteration"
	BeforeModel     Point = "before_model"
	AfterModel      Point = "after_model"
	BeforeTool      Point = "before_tool"
	AfterTool       Point = "after_tool"
	AfterIteration  Point = "after_iteration"
	AfterAgent      Point = "after_agent"
	AfterRun        Point = "after_run"
)

var points = []Point{
	BeforeRun, AfterRun, BeforeAgent, AfterAgent, BeforeIteration, AfterIteration, BeforeModel, AfterModel, BeforeTool,
	AfterTool,
}

// Points lists all points, each "before" followed by its "after".
func Points() []Point { return slices.Clone(points) }

// Before reports whether the event announces an action that a hook can still stop.
func (p Point) Before() bool { return strings.HasPrefix(string(p), "before_") }

// what names the action of the point.
func (p Point) what() string {
	_, what, _ := strings.Cut(string(p), "_")
	if what == "model" || what == "tool" {
		return what + " call"
	}
	return what
}

// Event is the argument of a hook; webhooks and commands get it as JSON.
type Event struct {
	// ID stays the same when the same event is sent again, such as by a resumed run. It contains no
	// full stop.
	ID   string `json:"id"`
	Type Point  `json:"type"`
	// Timestamp is the time of sending; zero means now.
	Timestamp time.Time `json:"timestamp"`
	Data      Data      `json:"data"`
}

// Data describes the subject of an event. It contains neither the state nor the texts of agents.
type Data struct {
	App     string `json:"app,omitempty"`
	Session string `json:"session,omitempty"`
	// Run is the ID of the invocation.
	Run string `json:"run,omitempty"`
	// Agent is the running agent's name, Address its place in the tree, such as "refine[2]/critic".
	Agent   string `json:"agent,omitempty"`
	Address string `json:"address,omitempty"`
	// Iteration is the iteration of the nearest loop, from 1, and MaxIterations its limit; 0 if
	// there is none.
	Iteration     int `json:"iteration,omitempty"`
	MaxIterations int `json:"max_iterations,omitempty"`
	// Score is the score of the previous iteration, or of the iteration that has ended.
	Score     *float64 `json:"score,omitempty"`
	BestScore *float64 `json:"best_score,omitempty"`
	// Improvement is the difference to the previous score.
	Improvement *float64 `json:"improvement,omitempty"`
	// Rejected says why an iteration that has ended is not accepted.
	Rejected string `json:"rejected,omitempty"`
	// Failures is the number of its steps that failed.
	Failures int `json:"failures,omitempty"`
	// Stop is the reason for which a loop stopped, if the run is durable.
	Stop string `json:"stop,omitempty"`
	// Error is the failure of the action that has ended; empty if it succeeded.
	Error string `json:"error,omitempty"`
	Model *Model `json:"model,omitempty"`
	Tool  *Tool  `json:"tool,omitempty"`
}

// Model is a call of a model.
type Model struct {
	Name string `json:"name"`
	// Turn counts the calls of one run of an agent, from 1.
	Turn         int    `json:"turn"`
	FinishReason string `json:"finish_reason,omitempty"`
	// Tokens are counted as in a budget: OutputTokens include the model's thoughts.
	InputTokens  int `json:"input_tokens,omitempty"`
	OutputTokens int `json:"output_tokens,omitempty"`
}

// Tool is a call of a tool, with its arguments.
type Tool struct {
	Name   string         `json:"name"`
	CallID string         `json:"call_id,omitempty"`
	Args   map[string]any `json:"args,omitempty"`
}
