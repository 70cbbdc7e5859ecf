// SPDX-License-Identifier: Apache-2.0

package prose

import (
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/session"
)

// Watch collects the data of a run's summary. The zero value is ready to use.
type Watch struct {
	Fold      progress.Fold
	Diagnosis Diagnosis
	Resources progress.Resources
}

// Add takes the next event of the run and returns the lines that report it.
func (w *Watch) Add(ev *session.Event) []string {
	w.Diagnosis.Add(ev)
	w.Resources.Add(ev)
	return w.Fold.Add(ev)
}
