// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/runs/schedule"
	"github.com/refrain-dev/refrain/internal/values/brief"
)

// Day is the most that all runs can use that a schedule starts within 24 hours. A null value is unlimited or unknown.
type Day struct {
	Schedule string           `json:"schedule"`
	Times    string           `json:"times"`
	Runs     int              `json:"runs"`
	Calls    definition.Bound `json:"calls"`
	Tokens   definition.Bound `json:"tokens"`
	Cost     definition.Bound `json:"cost"`
	// Problem says why the schedule can start no run; empty if it can.
	Problem string `json:"problem,omitzero"`
}

// DayOf returns the most that a schedule can use within 24 hours. given has what is assumed about models; a schedule has no limits of its own.
func DayOf(s *schedule.Schedule, def *definition.Definition, given definition.Assumed) Day {
	given.Limits, given.EveryModel = definition.Limits{}, ""
	one, runs := def.Worst(given).Total, s.MostADay(time.Now())
	n := definition.Bound(runs)
	d := Day{Schedule: s.Name, Times: s.Rule(), Runs: runs, Calls: n * one.Calls, Tokens: n * one.Tokens, Cost: n * one.Cost}
	if err := operations.CheckStartOf(s, def); err != nil {
		d.Problem = err.Error()
	}
	return d
}

// String describes the day in a line.
func (d Day) String() string {
	text := fmt.Sprintf("%s (%s): at most ", d.Schedule, d.Times)
	if d.Runs == 1 {
		text += "1 run a day"
	} else {
		text += fmt.Sprintf("%d runs a day", d.Runs)
	}
	if d.Calls > 0 {
		text += ", " + count(d.Calls) + " requests to models"
		if !d.Tokens.Unbounded() {
			text += ", " + count(d.Tokens) + " tokens"
		}
		if d.Cost.Unbounded() {
			text += ", cost unknown"
		} else {
			text += ", cost " + brief.Money(float64(d.Cost))
		}
	}
	if d.Problem != "" {
		text += "; it can start none: " + d.Problem
	}
	return text
}

// DaysOf returns the days of the schedules that start a definition. Their file is in the folder of which refrain serve would serve the
// definition. Without such a file there are none. The error is that of [schedule.Read].
func DaysOf(file string, def *definition.Definition, given definition.Assumed) (days []Day, err error) {
	dir, base := filepath.Split(file)
	whole, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for _, at := range [][2]string{{dir, base}, {filepath.Join(dir, ".."), filepath.Base(whole) + "/" + base}} {
		name := operations.NameIn(at[1])
		if name == "" {
			continue
		}
		list, wrong := schedule.Read(at[0])
		if wrong != nil && !errors.Is(wrong, fs.ErrNotExist) {
			err = wrong
		}
		for _, s := range list {
			if s.Definition == name {
				days = append(days, DayOf(s, def, given))
			}
		}
	}
	return days, err
}
