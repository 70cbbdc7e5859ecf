// SPDX-License-Identifier: Apache-2.0

// Package schedule reads a file of schedules and computes when each of them starts a run. It has no clock and no store.
//
//	list, problems := schedule.Parse("schedules.yaml", text)
//	next := list[0].Next(time.Now())
//	id := list[0].RunID(next) // nightly@20261130T020000Z
//
// Package scheduler starts the runs.
package schedule

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/refrain-dev/refrain/definition"
	"github.com/refrain-dev/refrain/internal/values/suggest"
)

// File is the name of the file of schedules, in the folder of the definitions.
const File = "schedules.yaml"

// Overlap says what happens at a time at which an earlier run of the schedule has not ended.
type Overlap string

// The values of Overlap.
const (
	Skip           Overlap = "skip"            // the time passes without a run
	Queue          Overlap = "queue"           // the run starts when the earlier one has ended; only the newest time waits
	CancelPrevious Overlap = "cancel_previous" // the earlier run is canceled, and the new one starts when it has ended
)

// Schedule starts runs of a definition at certain times.
type Schedule struct {
	// Name is unique among all schedules of a store, because the IDs of runs contain it.
	Name string
	// Definition is the name of a definition of the folder. At is its place in the file.
	Definition string
	At         definition.Position
	// Cron is an expression of five fields, or a word such as @daily; empty if Every is given. Every is at least 1 s and
	// counts from 1970-01-01 00:00 UTC.
	Cron  string
	Every time.Duration
	// Location is the time zone of Cron. The default is UTC, so that all servers compute the same times.
	Location *time.Location
	// Request is the user's message; if it is empty, the definition's query is used. Set has values for the definition's inputs and
	// for keys of its state.
	Request string
	Set     map[string]any
	// Overlap is Skip by default.
	Overlap Overlap
	// CatchUp is how late a run may start that no server could start in time; the default is 1 h.
	CatchUp time.Duration
	// Jitter delays each start by a part of this time, which depends only on the schedule and the time. The default is 0.
	Jitter time.Duration
	// Keep is how long runs of the schedule are kept after their end, and KeepFailed how long those that have failed are. 0 means the
	// rule of the server; see package retention.
	Keep, KeepFailed time.Duration

	spec *cron.SpecSchedule // nil if Every is given
}

// DefaultCatchUp is the default of Schedule.CatchUp.
const DefaultCatchUp = time.Hour

// leastCatchUp is the least delay that a start may have, because a server that is alive is late too.
const leastCatchUp = 10 * time.Second

// Rule describes the times of the schedule. If it changes, the schedule begins anew.
func (s *Schedule) Rule() string {
	if s.spec == nil {
		return "every " + s.Every.String()
	}
	return s.Cron + " " + s.Location.String()
}

// Next returns the first time of the schedule after a time, without jitter. It returns the zero time if there is none within
// five years.
func (s *Schedule) Next(after time.Time) time.Time {
	if s.spec == nil {
		n := int64(s.Every / time.Second)
		return time.Unix((after.Unix()/n+1)*n, 0).UTC()
	}
	spec := *s.spec
	if everyHour(&spec) {
		spec.Location = s.Location
		return spec.Next(after.In(s.Location))
	}
	spec.Location = time.UTC
	for clock := clockAt(after.In(s.Location)); ; {
		if clock = spec.Next(clock); clock.IsZero() {
			return clock
		}
		if t := s.resolve(clock); t.After(after) {
			return t
		}
	}
}

// everyHour reports whether the field of the hours is *, possibly in a list. Package cron marks such a field with the highest bit.
func everyHour(spec *cron.SpecSchedule) bool { return spec.Hour&(1<<63) != 0 }

// clockAt returns the time that a clock on the wall shows, as a time in UTC.
func clockAt(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// resolve returns the time at which a clock in the schedule's time zone shows a time. If the clock shows it twice, resolve
// returns the first time; if the clock skips it, the moment of the change.
func (s *Schedule) resolve(clock time.Time) time.Time {
	before, after := s.at(clock, -24*time.Hour), s.at(clock, 24*time.Hour)
	switch {
	case clockAt(before).Equal(clock):
		return before
	case clockAt(after).Equal(clock):
		return after
	}
	change, _ := before.ZoneBounds()
	return change
}

// at returns the time at which a clock shows a time, with the offset from UTC that applies some time before or after.
func (s *Schedule) at(clock time.Time, near time.Duration) time.Time {
	_, offset := clock.Add(near).In(s.Location).Zone()
	return clock.Add(-time.Duration(offset) * time.Second).In(s.Location)
}

// Due returns when the run of a time of the schedule starts: the time plus its jitter, in whole milliseconds.
func (s *Schedule) Due(t time.Time) time.Time {
	if s.Jitter < time.Millisecond {
		return t
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s@%d", s.Name, t.Unix())
	part := float64(h.Sum64()>>11) / (1 << 53)
	return t.Add(time.Duration(part * float64(s.Jitter)).Truncate(time.Millisecond))
}

// NextDue returns the first time whose run is due after now. It may have passed, if its jitter has not. It returns the zero time if there is
// none within five years.
func (s *Schedule) NextDue(now time.Time) time.Time {
	t := s.Next(now.Add(-s.Jitter - time.Nanosecond))
	for !t.IsZero() && !s.Due(t).After(now) {
		t = s.Next(t)
	}
	return t
}

// Newest returns the last time of the schedule after a time whose run is due now, and the zero time if there is none. It skips times
// that are later than CatchUp allows.
func (s *Schedule) Newest(after, now time.Time) (newest time.Time) {
	oldest := now.Add(-max(s.CatchUp, leastCatchUp))
	if first := oldest.Add(-s.Jitter - time.Nanosecond); after.Before(first) {
		after = first
	}
	for t := s.Next(after); !t.IsZero() && !t.After(now); t = s.Next(t) {
		if due := s.Due(t); !due.After(now) && !due.Before(oldest) {
			newest = t
		}
	}
	return newest
}

// MostADay returns the largest number of starts within 24 hours, among those of the month after a time.
func (s *Schedule) MostADay(after time.Time) (most int) {
	if s.spec == nil {
		return int(math.Ceil(float64(24*time.Hour) / float64(s.Every)))
	}
	var day []time.Time // the last times, within 24 hours
	for t := s.Next(after); !t.IsZero() && t.Before(after.AddDate(0, 1, 1)); t = s.Next(t) {
		day = append(day, t)
		for !day[0].After(t.Add(-24 * time.Hour)) {
			day = day[1:]
		}
		most = max(most, len(day))
	}
	return max(most, 1) // a schedule of once a year starts on some day
}

// timeFormat is the form of a time in the ID of a run: ISO 8601 without characters that an ID cannot have.
const timeFormat = "20060102T150405Z"

// RunID returns the ID of the run of a time. It is the same on all servers.
func (s *Schedule) RunID(t time.Time) string { return s.Name + "@" + t.UTC().Format(timeFormat) }

// Owns reports whether a run, by its ID, is one of the schedule.
func (s *Schedule) Owns(id string) bool { return strings.HasPrefix(id, s.Name+"@") }

// Missing quotes a name that no schedule has, with the one that was probably meant or the names that there are.
func Missing(name string, list []*Schedule) string {
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return fmt.Sprintf("%q: %s has no schedules", name, File)
	}
	return fmt.Sprintf("%q: %s", name, suggest.Hint(name, names))
}
