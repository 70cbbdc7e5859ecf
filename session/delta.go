// SPDX-License-Identifier: Apache-2.0

package session

// delta is the state delta of an event. To find the first key of a map takes longer than what is
// done with it, and most deltas have one key: it is looked up once for all who ask.
type delta struct {
	all   map[string]any
	one   bool // there is one key, with this value
	key   string
	value any
}

func deltaOf(m map[string]any) delta {
	d := delta{all: m}
	if len(m) == 1 {
		for d.key, d.value = range m {
			d.one = true
			break // to look for another one takes as long again
		}
	}
	return d
}

// normalized makes the delta of an event plain, as [EventActions.Normalize] does, and returns it.
func normalized(ev *Event) (delta, error) {
	d := deltaOf(ev.Actions.StateDelta)
	if len(d.all) == 0 || d.one && isPlain(d.value, 0) && isKey(d.key) {
		return d, nil
	}
	if err := ev.Actions.Normalize(); err != nil {
		return d, err
	}
	return deltaOf(ev.Actions.StateDelta), nil
}

// weight is [weightOfValue] of the delta.
func (d *delta) weight() int {
	if d.one {
		return leastWeight + len(d.key) + weightOfValue(d.value)
	}
	return weightOfValue(d.all)
}
