// SPDX-License-Identifier: Apache-2.0

package model

// CacheHint says what later requests are expected to repeat of a request. A provider whose cache has to be
// asked for, and paid for, is asked to keep only that. A provider that keeps whatever it sees ignores all
// but Key and Retention.
//
// A part that is written into Anthropic's cache costs 1.25 times as much as other input, for an hour twice
// as much, and a tenth when it is read again. So whoever sets Later or Next expects a reader.
type CacheHint struct {
	// Key is the same for the requests that begin in the same way: those of one agent in one run.
	Key string `json:"key,omitzero"`
	// Retention is how long the provider is to keep what it sees, in the provider's words, such as OpenAI's
	// "24h"; empty leaves it to the provider.
	Retention string `json:"retention,omitzero"`

	// Later says that a later request of the run repeats the tools and the first Static bytes of the
	// system instruction, or that an earlier one had them kept: Anthropic reads only what it is asked to
	// keep.
	Later  bool `json:"later,omitzero"`
	Static int  `json:"static,omitzero"`
	// Hour says that the later request comes more than five minutes from now, and others after it.
	Hour bool `json:"hour,omitzero"`
	// Next says that the next request comes within five minutes, and repeats the whole of this one except
	// for the last Fresh contents.
	Next  bool `json:"next,omitzero"`
	Fresh int  `json:"fresh,omitzero"`
	// Before says that the request begins with the whole of the one before it, which had Next: what that
	// has written can be read.
	Before bool `json:"before,omitzero"`
}
