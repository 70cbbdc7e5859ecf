// SPDX-License-Identifier: Apache-2.0

package drive

import "github.com/refrain-dev/refrain/agent"

// joining says which marks of a step can be stored together with the event after them: see
// [mark.Mark.Joins].
type joining struct {
	// through: the agent hands on what its steps say, and does nothing else in between. Any
	// other agent can have done something by the time that its next event comes, so a mark
	// that passes through it is stored at once.
	through bool
	// start: what follows the start of the step is another mark.
	start bool
	// end: nothing that the step does has an effect before its next event.
	end bool
}

func (s *Step) joining() joining {
	switch agent.TypeOf(s.cfg.Agent) {
	case agent.TypeLoop, agent.TypeSequential, agent.TypeParallel:
		return joining{through: true, start: s.base.self != nil && len(s.base.cfg.BeforeAgentCallbacks) == 0}
	}
	brief := s.brief()
	return joining{start: brief, end: brief}
}
