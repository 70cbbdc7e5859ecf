// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"strings"

	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
)

// Outlook describes one loop at one moment: the sentence, how the loop can stop or why it has, and the
// forecast. Its words are in one language; everything else is data.
type Outlook struct {
	// Loop is the loop's address, Name its name.
	Loop session.Address `json:"loop"`
	Name string          `json:"name"`
	// Sentence has the data, Words its text.
	Sentence Sentence `json:"sentence"`
	Words    Words    `json:"words"`
	// Reason is why the loop has stopped; empty while it runs. Nearest is the name of the row that came closest to
	// stopping the loop without doing so; empty if none is close.
	Reason  loop.StopReason `json:"reason,omitzero"`
	Nearest string          `json:"nearest,omitzero"`
	Ledger  []OutlookRow    `json:"ledger"`
	// Forecast is the prediction for the next iterations; nil when the loop has stopped.
	Forecast *loop.Forecast `json:"forecast,omitzero"`
}

// OutlookRow is a row of a ledger with its words.
type OutlookRow struct {
	loop.Row
	Words RowWords `json:"words"`
}

// Outlooks returns the outlooks of a run's outermost loops, and of running loops in them, in a language.
// Outer loops come first.
func Outlooks(t *progress.Tree, lang Language) []Outlook {
	all := []Outlook{}
	for s := range t.Loops() {
		if s.Loop.Stop == nil || !strings.Contains(string(s.Address), "[") {
			all = append(all, OutlookOf(t, s, lang))
		}
	}
	return all
}

// OutlookOf returns the outlook of one loop of a run in a language. s must be the step of a loop.
func OutlookOf(t *progress.Tree, s *progress.Step, lang Language) Outlook {
	led := s.Loop.Ledger(t.Now)
	o := Outlook{
		Loop: s.Address, Name: s.Name, Sentence: SentenceOf(s.Loop, t.Now), Reason: led.Reason, Nearest: led.Nearest,
		Ledger: make([]OutlookRow, len(led.Rows)), Forecast: led.Forecast,
	}
	o.Words = o.Sentence.In(lang)
	for i := range led.Rows {
		o.Ledger[i] = OutlookRow{led.Rows[i], RowOf(s, lang, &led, &led.Rows[i])}
	}
	return o
}
