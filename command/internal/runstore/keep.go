// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/refrain-dev/refrain/internal/runs/retention"
	"github.com/refrain-dev/refrain/internal/values/days"
)

// KeepFlags are the flags that say how long runs are kept.
type KeepFlags struct{ keep, failed string }

// Add adds the flags. verb says what happens to the other runs.
func (f *KeepFlags) Add(fl *pflag.FlagSet, verb string) {
	fl.StringVar(&f.keep, "keep", "", verb+" runs that ended longer ago than this `duration`, such as 30d or 12h")
	fl.StringVar(&f.failed, "keep-failed", "", "the same `duration` for runs that have failed; default: that of --keep")
}

// Rule returns the rule of the flags.
func (f *KeepFlags) Rule() (r retention.Rule, err error) {
	if r.Keep, err = Age("--keep", f.keep); err == nil {
		r.KeepFailed, err = Age("--keep-failed", f.failed)
	}
	return r, err
}

// Age returns the duration of a flag, which is greater than zero; 0 if the flag is not given.
func Age(flag, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := days.Parse(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s %q: write a time such as 30d, 2w or 12h", flag, text)
	}
	return d, nil
}
