// SPDX-License-Identifier: Apache-2.0

package acpclient

import "github.com/refrain-dev/refrain/budget"

// usage is the usage of one prompt. The total shows whether the input includes the tokens of the cache.
type usage struct {
	Input   int64 `json:"inputTokens"`
	Output  int64 `json:"outputTokens"`
	Read    int64 `json:"cachedReadTokens"`
	Write   int64 `json:"cachedWriteTokens"`
	Thought int64 `json:"thoughtTokens"`
	Total   int64 `json:"totalTokens"`
}

// add adds the usage of another request.
func (u *usage) add(more *usage) {
	u.Input, u.Output, u.Total = u.Input+more.Input, u.Output+more.Output, u.Total+more.Total
	u.Read, u.Write, u.Thought = u.Read+more.Read, u.Write+more.Write, u.Thought+more.Thought
}

// mostTokens is more than any prompt can use, and small enough that a sum of such numbers does not overflow.
const mostTokens = 1 << 50

// counts reports whether the usage is not empty and its numbers are plausible.
func (u *usage) counts() bool {
	return u != nil && min(u.Input, u.Output, u.Read, u.Write, u.Thought, u.Total) >= 0 &&
		max(u.Input, u.Output, u.Read, u.Write, u.Thought, u.Total) <= mostTokens && u.Input+u.Output+u.Read+u.Write > 0
}

// reportUsage sets the usage in the report. It adds the tokens of the cache and of thoughts if the total shows that the other numbers
// do not include them.
func (t *Talk) reportUsage(u *usage) {
	if t.usage.onlyLast && t.tools { // opencode reports its last request only, and there were more
		return
	}
	counted := budget.Usage{
		Calls: 1, InputTokens: u.Input, OutputTokens: u.Output, CachedTokens: u.Read, CacheWriteTokens: u.Write,
		Cost: t.report.Usage.Cost,
	}
	rest := u.Total - u.Input - u.Output
	if cached := u.Read + u.Write; rest >= cached {
		counted.InputTokens += cached
		rest -= cached
	}
	if rest >= u.Thought {
		counted.OutputTokens += u.Thought
	}
	t.report.Usage = counted
}
