// SPDX-License-Identifier: Apache-2.0

package term

import (
	"math"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// DurationFlag adds a flag for a duration, in the forms that a definition accepts: 90s, 30m, or a number of seconds.
func DurationFlag(fl *pflag.FlagSet, d *time.Duration, name string, value time.Duration, usage string) {
	*d = value
	f := fl.VarPF((*duration)(d), name, "", usage)
	if value == 0 {
		f.DefValue = "" // 0, which the help does not show
	}
}

// duration is the value of a duration flag.
type duration time.Duration

func (d *duration) String() string { return time.Duration(*d).String() }

// Type returns the name of the type, for the help of the flag and for ValueError.
func (d *duration) Type() string { return "duration" }

func (d *duration) Set(text string) error {
	got, err := time.ParseDuration(text)
	if s, notNumber := strconv.ParseFloat(text, 64); notNumber == nil {
		if !(math.Abs(s) <= math.MaxInt64/float64(time.Second)) {
			return strconv.ErrRange
		}
		got, err = time.Duration(s*float64(time.Second)), nil
	}
	if err != nil {
		return err
	}
	*d = duration(got)
	return nil
}
