// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/refrain-dev/refrain/definition/internal/schema"
	"github.com/refrain-dev/refrain/internal/text/source"
)

// NotifyEvent is an occurrence of a run that people are notified of.
type NotifyEvent string

// The events.
const (
	NotifyEnded   NotifyEvent = "ended"            // the run has completed, or was canceled
	NotifyLimit   NotifyEvent = "stopped_by_limit" // a limit or no_progress stopped its loop before the loop's own criterion
	NotifyFailed  NotifyEvent = "failed"
	NotifyAsks    NotifyEvent = "asks"     // the run asks a person
	NotifyLimited NotifyEvent = "limited"  // the provider of a step accepts no requests for now
	NotifyBest    NotifyEvent = "new_best" // an iteration of the outermost loop is better than all before it
	NotifyPaused  NotifyEvent = "paused"   // the run stands still until it is resumed
)

var notifyEvents = []NotifyEvent{NotifyEnded, NotifyLimit, NotifyFailed, NotifyAsks, NotifyLimited, NotifyBest, NotifyPaused}

// Notify says who is notified of what: the events, by the name of the environment variable that has the address.
type Notify map[string][]NotifyEvent

// ParseNotify reads texts such as OPS_SLACK=failed,asks. Without events, OPS_SLACK stands for ended, stopped_by_limit, failed and
// asks. The error does not contain the text, which may be an address.
func ParseNotify(texts []string) (Notify, error) {
	n := make(Notify, len(texts))
	for _, text := range texts {
		name, events, given := strings.Cut(text, "=")
		if !variable().MatchString(name) {
			return nil, fmt.Errorf("give the name of an environment variable with the address, such as OPS_SLACK=failed,asks, and not the " +
				"address, because it is a secret, which a list of processes would show")
		}
		if !given {
			n[name] = []NotifyEvent{NotifyEnded, NotifyLimit, NotifyFailed, NotifyAsks}
			continue
		}
		for event := range strings.SplitSeq(events, ",") {
			if !slices.Contains(notifyEvents, NotifyEvent(event)) {
				return nil, fmt.Errorf("%s: behind = is a word that is no event; the events are %s; an address stands in the variable, and not here",
					name, strings.Join(wordsOf(notifyEvents), ", "))
			}
			n[name] = append(n[name], NotifyEvent(event))
		}
	}
	return n, nil
}

// String says who is notified of what, such as "OPS_SLACK of failed and asks".
func (n Notify) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(n)) {
		all = append(all, name+" of "+strings.Join(wordsOf(n[name]), ", "))
	}
	return strings.Join(all, "; ")
}

var notifyValue = named(each(oneWord(notifyEvents...), listing{empty: "name some events, such as [failed, asks]", unique: true,
	line: func(text string) string {
		if strings.Contains(text, "://") {
			return "write a list of events, such as [failed, asks]"
		}
		return "write it as a list: [" + text + "]"
	}}))

func notifyShape() shape {
	s := schema.MapOf(notifyValue.shape().AdditionalProperties)
	s.PropertyNames = variableShape()
	return s
}

// takesNotify reads the field notify. No problem shows an address that stands in the file.
func takesNotify(p place, n *source.Node, d *Definition) bool {
	p.hideAddresses(n)
	m, ok := notifyValue.read(p, n)
	for name := range m {
		if !variable().MatchString(name) {
			p.report(p.a.nodes["key of notify."+name], CodeValue, "a key of notify must be the name of an environment variable").
				Hint = "an address is a secret: put it into a variable, such as OPS_SLACK, and write the variable's name here"
			return false
		}
	}
	d.Notify = m
	return ok
}

// hideAddresses masks the addresses in a value in the excerpts of problems.
func (p place) hideAddresses(n *source.Node) {
	if n.Kind == source.Scalar && strings.Contains(n.Value, "://") {
		p.src.Secrets = append(p.src.Secrets, n.Value)
	}
	for _, c := range n.Content {
		p.hideAddresses(c)
	}
}
