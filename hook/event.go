// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"slices"
	"strings"
	"time"
)

// Point is when a hook is called.
type Point string

// The points, in the order in which a run comes to them.
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
	BeforeRun, AfterRun, BeforeAgent, AfterAgent, BeforeIteration, AfterIteration, BeforeModel, AfterModel, BeforeTool, AfterTool,
}

// Points lists all points, each before with its after.
func Points() []Point { return slices.Clone(points) }

// Before reports whether what is told has not been done yet, so that it can be
// stopped.
func (p Point) Before() bool { return strings.HasPrefix(string(p), "before_") }

// what is about to be done, or was, at the point.
func (p Point) what() string {
	_, what, _ := strings.Cut(string(p), "_")
	if what == "model" || what == "tool" {
		return what + " call"
	}
	return what
}

// Event is what a hook is told. As JSON it is what webhooks are sent, and what
// commands read.
type Event struct {
	// ID is the same whenever the same is told again, as when a run is resumed
	// that was cut off in between. It has no full stop in it.
	ID   string `json:"id"`
	Type Point  `json:"type"`
	// Timestamp is when it is told; zero is now.
	Timestamp time.Time `json:"timestamp"`
	Data      Data      `json:"data"`
}

// Data says what an event is about. Nothing of the state is in it, nor what
// agents say.
type Data struct {
	App     string `json:"app,omitempty"`
	Session string `json:"session,omitempty"`
	// Run is the ID of the invocation.
	Run string `json:"run,omitempty"`
	// Agent is the one that runs, and Address where in the tree, such as
	// "refine[2]/critic".
	Agent   string `json:"agent,omitempty"`
	Address string `json:"address,omitempty"`
	// Iteration is that of the nearest loop, from 1, and MaxIterations its limit;
	// 0 if there is none.
	Iteration     int `json:"iteration,omitempty"`
	MaxIterations int `json:"max_iterations,omitempty"`
	// Score is that of the iteration before, or of the one that has ended.
	Score     *float64 `json:"score,omitempty"`
	BestScore *float64 `json:"best_score,omitempty"`
	// Improvement is how much better the score is than the one before.
	Improvement *float64 `json:"improvement,omitempty"`
	// Rejected says why an iteration that has ended is not accepted.
	Rejected string `json:"rejected,omitempty"`
	// Failures is how many steps of it have failed.
	Failures int `json:"failures,omitempty"`
	// Stop is why a loop has stopped, if the run writes that down.
	Stop string `json:"stop,omitempty"`
	// Error is how what is over has failed; empty if it has not.
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
	InputTokens  int    `json:"input_tokens,omitempty"`
	OutputTokens int    `json:"output_tokens,omitempty"`
}

// Tool is a call of a tool, with what the model gives it.
type Tool struct {
	Name   string         `json:"name"`
	CallID string         `json:"call_id,omitempty"`
	Args   map[string]any `json:"args,omitempty"`
}
