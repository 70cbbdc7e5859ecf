// SPDX-License-Identifier: Apache-2.0

package agenttest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-cmp/cmp"

	"github.com/refrain-dev/refrain/agent/drive"
	"github.com/refrain-dev/refrain/session"
)

func (s *suite) names() {
	name := s.agent.Name()
	if _, err := drive.NewTree(s.agent); err != nil {
		s.Errorf("the agent's tree is good for a runner: %v", err)
	}
	if found := s.agent.FindAgent(name); found == nil || found.Name() != name {
		s.Errorf("FindAgent finds the agent itself by its name %q, got %v", name, found)
	}
	if found := s.agent.FindSubAgent(name); found != nil {
		s.Errorf("FindSubAgent leaves the agent itself out, got %v", found)
	}
	if found := s.agent.FindAgent("no such agent"); found != nil {
		s.Errorf("FindAgent of a name that nobody has is nil, got %v", found)
	}
	subs := s.agent.SubAgents()
	for i, sub := range slices.Clone(subs) {
		if found := s.agent.FindSubAgent(sub.Name()); found == nil || found.Name() != sub.Name() {
			s.Errorf("FindSubAgent finds the sub-agent %q, got %v", sub.Name(), found)
		}
		subs[i] = nil
	}
	if slices.Contains(s.agent.SubAgents(), nil) {
		s.Error("what a caller does with the slice that SubAgents returns does not matter")
	}
}

func (s *suite) lazy() {
	in := s.invoke(s.Context(), "lazy")
	s.agent.Run(in.ctx)
	if n := in.view.Events().Len(); n != 1 {
		s.Errorf("Run does nothing until it is ranged over: the session has %d events, want only the user's", n)
	}
}

func (s *suite) sameTraits() {
	traits := func() (all [2]drive.Traits) {
		return [2]drive.Traits{drive.TraitsOf(s.agent, false), drive.TraitsOf(s.agent, true)}
	}
	before := traits()
	s.mustRun(s.invoke(s.Context(), "same traits"))
	if diff := cmp.Diff(before, traits()); diff != "" {
		s.Errorf("Traits returns the same before and after a run: %s", diff)
	}
}

func (s *suite) stamped() {
	in := s.invoke(s.Context(), "stamped")
	got := s.mustRun(in)
	for i, ev := range got.events {
		if ev.Author == "" {
			s.Errorf("event %d has no Author", i+1)
		}
		if ev.InvocationID != in.ctx.InvocationID() {
			s.Errorf("event %d is of another invocation: %q, want %q", i+1, ev.InvocationID, in.ctx.InvocationID())
		}
		if root := rootOf(ev.Address); root != s.agent.Name() {
			s.Errorf("event %d has the address %q, want one at or below %q", i+1, ev.Address, s.agent.Name())
		}
		if ev.Attempt < 1 {
			s.Errorf("event %d has Attempt %d, want at least 1", i+1, ev.Attempt)
		}
	}
}

// rootOf is the agent at the beginning of an address.
func rootOf(a session.Address) string {
	first, _, _ := strings.Cut(string(a), "/")
	return session.Address(first).Agent()
}

func (s *suite) rangeAgain() {
	in := s.invoke(s.Context(), "again")
	seq := drive.Run(in.ctx, s.agent)
	first := s.take(in, seq, -1)
	second := s.take(in, seq, -1)
	other := s.mustRun(s.invoke(s.Context(), "other"))
	for _, got := range []*outcome{first, second} {
		if got.err != nil {
			s.Fatalf("a run of the agent succeeds: %v", got.err)
		}
	}
	if diff := cmp.Diff(authors(first), authors(second)); diff != "" {
		s.Errorf("ranging over one sequence again runs the agent again: authors, sorted (-first +second):\n%s", diff)
	}
	if diff := cmp.Diff(authors(first), authors(other)); diff != "" {
		s.Errorf("another invocation runs the agent again: authors, sorted (-first +other):\n%s", diff)
	}
}

// authors are sorted: agents that run at the same time say things in any order.
func authors(r *outcome) []string {
	all := []string{}
	for _, ev := range r.events {
		all = append(all, ev.Author)
	}
	slices.Sort(all)
	return all
}

func (s *suite) stops() {
	total := len(s.mustRun(s.invoke(s.Context(), "whole")).events)
	for n := 1; n <= min(total, 4); n++ {
		in := s.invoke(s.Context(), "left")
		if got := s.take(in, drive.Run(in.ctx, s.agent), n); len(got.events) != n {
			s.Errorf("the consumer left after %d events, got %d", n, len(got.events))
		}
	}
}

func (s *suite) panicsPass() {
	in := s.invoke(s.Context(), "panic")
	defer func() {
		if r := recover(); r != "the consumer's own" {
			s.Errorf("a panic of the consumer arrives where it belongs, got %v", r)
		}
	}()
	for range drive.Run(in.ctx, s.agent) {
		panic("the consumer's own")
	}
}

// errCause is why the suite cancels.
var errCause = errors.New("agenttest: enough")

func (s *suite) canceledBefore() {
	ctx, cancel := context.WithCancelCause(s.Context())
	cancel(errCause)
	in := s.invoke(ctx, "before")
	got := s.take(in, drive.Run(in.ctx, s.agent), -1)
	if len(got.events) != 0 {
		s.Errorf("under a canceled context nothing is said, got %d events", len(got.events))
	}
	if got.err != errCause {
		s.Errorf("under a canceled context the one error is context.Cause, got %v", got.err)
	}
}

func (s *suite) canceled() {
	total := len(s.mustRun(s.invoke(s.Context(), "whole")).events)
	for n := 1; n <= min(total, 4); n++ {
		ctx, cancel := context.WithCancelCause(s.Context())
		in := s.invoke(ctx, "canceled")
		in.after = func(said int) {
			if said == n {
				cancel(errCause)
			}
		}
		got := s.take(in, drive.Run(in.ctx, s.agent), -1)
		if got.err != errCause {
			s.Errorf("canceled after event %d of %d: the one error, and the end, is context.Cause, got %v", n, total,
				got.err)
		}
		if late := len(got.events) - n; late != 0 {
			s.Errorf("canceled after event %d of %d: nothing more is said, got %d more events", n, total, late)
		}
	}
}

func (s *suite) independent() {
	want := authors(s.mustRun(s.invoke(s.Context(), "alone")))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			in := s.invoke(s.Context(), "together")
			got := s.take(in, drive.Run(in.ctx, s.agent), -1)
			if got.err != nil {
				s.Errorf("a run beside others succeeds as it does alone: %v", got.err)
			}
			if diff := cmp.Diff(want, authors(got)); diff != "" {
				s.Errorf("a run beside others says what it says alone: authors, sorted (-alone +together):\n%s", diff)
			}
			for _, ev := range got.events {
				if ev.InvocationID != in.ctx.InvocationID() {
					s.Errorf("an event of invocation %q was yielded in %q", ev.InvocationID, in.ctx.InvocationID())
				}
			}
		})
	}
	wg.Wait()
}
