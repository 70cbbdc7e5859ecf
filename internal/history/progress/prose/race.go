// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"strings"

	"github.com/refrain-dev/refrain/session/mark"
)

// RaceWords returns the decision of a race in words of a language: which loop has won, and why. Names are those of the
// definition.
func RaceWords(d *mark.RaceDecided, lang Language) Words {
	w := Words{Lead: lang.say(raceWon, d.Winner)}
	if d.Continues {
		w.Lead = lang.say(raceGoesOn, d.Winner)
	}
	w.Rest = lang.say(raceUnscored)
	if len(d.Standings) == 1 {
		w.Rest = lang.say(raceAlone)
	}
	for i := range d.Standings {
		if s := &d.Standings[i]; s.Loop == d.Winner && s.Score != nil {
			w.Rest = lang.say(raceBest, lang.offBy(*s.Score, s.Error))
		}
	}
	if d.Chosen {
		w.Rest = lang.say(raceChosen)
	}
	if len(d.Ties) > 0 {
		w.Rest = lang.say(raceTies, w.Rest, lang.say(whyNoise), strings.Join(d.Ties, ", "))
	}
	w.Rest += "."
	return w
}
