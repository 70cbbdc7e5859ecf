// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/agent"
	"github.com/refrain-dev/refrain/artifact"
	"github.com/refrain-dev/refrain/memory"
	"github.com/refrain-dev/refrain/session"
)

// Config describes a supervisor.
type Config struct {
	// Service keeps the sessions. It has to be a session.Leaser and a
	// session.Watcher too, as all services of this project are. Required.
	Service session.Service
	// AppName and UserID are whose the runs are. Required. The mailboxes of runs
	// are sessions of the application AppName + ".mail".
	AppName, UserID string
	// Build makes the agents of a run, when it starts and each time that it is
	// resumed, of what the run was started with. Required.
	Build func(ctx context.Context, started session.RunStarted) (*Program, error)
	// ArtifactService and MemoryService serve all runs whose program has none
	// of its own. The first is also what Fork copies files in. Both are optional.
	ArtifactService artifact.Service
	MemoryService   memory.Service
	// Owner is told to whoever comes second to a run; empty is the process and
	// its machine.
	Owner string
	// Dead reports whether the owner of a lease is known to be gone: then its
	// run is taken over at once instead of when the lease has ended. Nil knows
	// of nobody.
	Dead func(owner string) bool
	// LeaseTTL is how long a run stays that of a process which has died, and how
	// long one that cannot reach the store goes on; 0: 15 s.
	LeaseTTL time.Duration
	// MaxRuns is how many runs are driven at once; others wait for their turn,
	// in the order in which they came. 0: all.
	MaxRuns int
	// OnEvent is given every event of the runs that this supervisor drives, each
	// run's in their order, pieces of streamed answers too. The run waits for
	// it. Nil is nobody.
	OnEvent func(id string, ev *session.Event)
}

// Program is what runs: the agents of one run, with what they need.
type Program struct {
	// Agent is the root of the tree. Required.
	Agent agent.Agent
	// RunConfig is how the run is done. Its Pause is the supervisor's.
	RunConfig agent.RunConfig
	// ArtifactService and MemoryService take the place of the supervisor's.
	ArtifactService artifact.Service
	MemoryService   memory.Service
	// Close is called when the agents are of no more use; nil is nothing to do.
	Close func()
}

func (p *Program) close() {
	if p != nil && p.Close != nil {
		p.Close()
	}
}

// Request asks for a run.
type Request struct {
	// SessionID is the run's ID, and its session's; empty makes one up. A session
	// that is there goes on with another run, if its last one is over.
	SessionID string
	// Message is what the user says.
	Message *genai.Content
	// State changes the session's state together with it.
	State map[string]any
	// Started is what the run keeps for Build. By is filled in.
	Started session.RunStarted
	// Program is what Build would make, for a caller who has it at hand; nil
	// lets Build make it. The supervisor closes it, however Start ends.
	Program *Program
}

// Errors that callers branch on; compare with errors.Is. [*session.HeldError]
// says that another process drives the run.
var (
	// ErrNotFound: there is no such run.
	ErrNotFound = errors.New("run not found")
	// ErrOver: the run has come to its end.
	ErrOver = errors.New("the run has ended")
	// ErrPaused: the run is paused, and nothing of it is under way.
	ErrPaused = errors.New("the run is paused already")
	// ErrUnderWay: this supervisor drives the run, or its session's last run is
	// not over.
	ErrUnderWay = errors.New("the run is under way")
	// ErrNoQuestion: the run asks no such question, or it has its answer.
	ErrNoQuestion = errors.New("no such question is open")
	// ErrNoCheckpoint: a run cannot be forked there.
	ErrNoCheckpoint = errors.New("no such checkpoint")
	// ErrClosed: the supervisor was closed.
	ErrClosed = errors.New("the supervisor is closed")
)

func (c *Config) check() error {
	_, leases := c.Service.(session.Leaser)
	_, watches := c.Service.(session.Watcher)
	switch {
	case c.Service == nil:
		return errors.New("supervisor needs a Service")
	case !leases || !watches:
		return fmt.Errorf("supervisor needs a Service that is a session.Leaser and a session.Watcher, which %T is not", c.Service)
	case c.AppName == "" || c.UserID == "":
		return errors.New("supervisor needs an AppName and a UserID")
	case c.Build == nil:
		return errors.New("supervisor needs a Build function")
	case c.MaxRuns < 0 || c.LeaseTTL < 0:
		return fmt.Errorf("supervisor: MaxRuns %d and LeaseTTL %s must not be negative", c.MaxRuns, c.LeaseTTL)
	}
	if c.LeaseTTL == 0 {
		c.LeaseTTL = 15 * time.Second
	}
	if c.Owner == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "an unknown machine"
		}
		c.Owner = fmt.Sprintf("process %d on %s", os.Getpid(), host)
	}
	return nil
}
