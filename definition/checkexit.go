// SPDX-License-Identifier: Apache-2.0

package definition

import "slices"

// exit checks who may end a loop.
func (c *checker) exit(a *Agent) {
	permission, given := a.nodes["can_exit_loop"]
	given = given && !isNull(permission)
	leaves := exits(a)
	fin := a
	for fin != nil && fin.OutputKey != LoopOutput {
		fin = inLoop(fin)
	}
	around := a.loopAround()
	switch {
	case around == nil && a.ExitWhen != "":
		c.report(a.at("exit_when"), CodeNoLoop, "exit_when ends a loop, and %q is in none", a.Name)
	case around == nil && given:
		c.report(a.at("can_exit_loop"), CodeNoLoop, "can_exit_loop is about the loop around, and %q is in none", a.Name)
	case fin != nil && a.ExitWhen != "":
		c.report(a.at("exit_when"), CodeFinalizer, "%q runs when the loop has stopped already: it cannot end it", a.Name)
	case fin != nil && given && a.CanExitLoop:
		c.report(a.at("can_exit_loop"), CodeFinalizer, "%q runs when the loop has stopped already: it cannot end it", a.Name)
	case given && !a.CanExitLoop && a.ExitWhen != "":
		c.report(a.at("exit_when"), CodeCannot, "exit_when of %q would be refused: can_exit_loop is false", a.Name)
	case given && a.CanExitLoop && !leaves && a.Type != "":
		c.warn(a.at("can_exit_loop"), CodeCannot, "%q never asks to end the loop", a.Name).Hint = "exit_when says when it does"
	}
}

// inLoop is the agent around a within the same loop; nil if that is the loop.
func inLoop(a *Agent) *Agent {
	if a.parent == nil || a.parent.Type == TypeLoop {
		return nil
	}
	return a.parent
}

// exits reports whether the agent, or one in it, asks to end the loop around it.
func exits(a *Agent) bool {
	if a.ExitWhen != "" {
		return true
	}
	if a.Type == TypeLoop {
		return false // an exit in there ends that loop
	}
	return slices.ContainsFunc(a.SubAgents, exits)
}

// canExit lists the agents that may end a loop.
func canExit(a *Agent) []string {
	names := []string{}
	var visit func(*Agent)
	visit = func(a *Agent) {
		if a.CanExitLoop {
			names = append(names, a.Name)
		}
		if a.Type != TypeLoop {
			for _, sub := range a.SubAgents {
				visit(sub)
			}
		}
	}
	for _, sub := range a.SubAgents {
		if sub.OutputKey != LoopOutput {
			visit(sub)
		}
	}
	return names
}
