// SPDX-License-Identifier: Apache-2.0

package definition

// sharedKeys notes output keys that are written by two agents, or given to the run:
// one takes the place of the other. What belongs together is left out: an agent in
// another that writes the same key hands it on, and one in a loop goes on with what
// one before the loop has begun.
func (c *checker) sharedKeys() {
	first := make(map[string]*Agent)
	for a := range c.def.Root.All {
		key := a.OutputKey
		if key == "" || key == LoopOutput {
			continue
		}
		if at := c.given(key); at != "" {
			c.note(a.at("output_key"), CodeSharedKey, "%q writes %q, which %s gives: what is given is gone then", a.Name, key, at).
				Hint = "give the result a key of its own, unless it is to take the place of what was given"
		}
		before := first[key]
		switch {
		case before == nil:
			first[key] = a
		case !a.in(before) && a.loopAround() == before.loopAround():
			c.note(a.at("output_key"), CodeSharedKey, "%q and %q write the same key %q: the later result takes the place of the earlier one",
				before.Name, a.Name, key).Hint = "give each result a key of its own, unless one is to take the place of the other"
		}
	}
}

// given says what gives a key to a run before any agent runs; empty if nothing does.
func (c *checker) given(key string) string {
	for _, in := range c.def.Inputs {
		if in.Name == key {
			return "an input"
		}
	}
	return ""
}
