// SPDX-License-Identifier: Apache-2.0

// Package runpage makes of a run's events what its page shows: the head, with the ledger, the
// scores and the questions, and the iterations, as many as are asked for. The browser draws it
// and computes nothing.
//
//	p := runpage.Page{Live: new(progress.Live), Watch: new(prose.Watch)}
//	for _, ev := range events {
//		p.Live.Add(ev)
//		p.Watch.Add(ev)
//		p.Add(ev)
//		p.Wrote(ev)
//	}
//	head := p.Head(runpage.RunInfo{Status: "running"})
package runpage

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/refrain-dev/refrain/internal/files/runfiles"
	"github.com/refrain-dev/refrain/internal/history/progress"
	"github.com/refrain-dev/refrain/internal/history/progress/prose"
	"github.com/refrain-dev/refrain/internal/history/questions"
	"github.com/refrain-dev/refrain/internal/values/brief"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/mark"
)

// Page follows one run. Live and Watch are folds of the same events, which it reads; it keeps what
// they do not, and no event. It is not safe for concurrent use.
type Page struct {
	Live  *progress.Live
	Watch *prose.Watch

	seq     int64
	began   time.Time
	message string
	asked   questions.Fold
	error   string
	paused  *Paused
	acts    progress.Acts
	spans   map[session.Address]span
	writes  map[slot][]int64
	files   any // the value of runfiles.Key
}

// slot is a state key. One that lives as long as an iteration is another one in each.
type slot struct {
	pass session.Address
	key  string
}

// span is where in the log the events of a step are, and of those below it, and how many they are.
type span struct {
	first, last int64
	events      int
}

// Add takes the next event, which Live and Watch have taken.
func (p *Page) Add(ev *session.Event) {
	if ev.Partial {
		return
	}
	if p.spans == nil {
		p.spans = make(map[session.Address]span)
	}
	p.seq = max(p.seq, ev.Seq)
	if p.began.IsZero() {
		p.began = ev.Timestamp
	}
	if ev.Author == "user" && p.message == "" {
		p.message = brief.Line(ev.Text(), 400)
	}
	for at := ev.Address; at != ""; at = above(at) {
		s, ok := p.spans[at]
		if !ok {
			s.first = ev.Seq
		}
		s.last, s.events = max(s.last, ev.Seq), s.events+1
		p.spans[at] = s
	}
	if ev.Mark != nil {
		p.acts.Add(ev)
		p.ended(ev.Mark, ev.Timestamp)
		_ = p.asked.Add(ev) // a question that cannot be read cannot be answered here
	}
}

// Wrote takes down which state keys an event has written. It is for each event of the session, also
// for those of earlier runs and those that count no more: the state is made of all.
func (p *Page) Wrote(ev *session.Event) {
	for key, v := range ev.Actions.StateDelta {
		if key == runfiles.Key {
			p.files = v
		}
		if strings.HasPrefix(key, session.KeyPrefixTemp) || strings.HasPrefix(key, mark.KeyPrefix) {
			continue
		}
		at := slot{key: key}
		if strings.HasPrefix(key, session.KeyPrefixIteration) {
			at.pass = ev.Address[:strings.LastIndexByte(string(ev.Address), ']')+1]
		}
		if p.writes == nil {
			p.writes = make(map[slot][]int64)
		}
		p.writes[at] = append(p.writes[at], ev.Seq)
	}
}

// above returns the address above one, which may be that of an iteration: "a/b[2]" for "a/b[2]/c", then "a/b", then "a".
func above(at session.Address) session.Address {
	if strings.HasSuffix(string(at), "]") {
		return at[:strings.LastIndexByte(string(at), '[')]
	}
	return at[:max(0, strings.LastIndexByte(string(at), '/'))]
}

// ended takes the error of a run that has ended, and who has paused one, until it is resumed, and when a fork began.
func (p *Page) ended(m *mark.Mark, at time.Time) {
	var paused mark.RunPaused
	switch {
	case m.Kind == mark.KindRunPaused && m.Decode(&paused) == nil && len(paused.Waits) == 0:
		p.paused = &Paused{brief.Clean(paused.By), brief.Clean(paused.Reason)}
		if paused.Session != "" { // a fork begins here, behind what it has of its parent
			p.began = at
		}
	case m.Kind == mark.KindRunResumed || m.Kind == mark.KindRunEnded:
		p.paused = nil
	}
	var ended mark.RunEnded
	if m.Kind == mark.KindRunResumed || m.Kind == mark.KindRunEnded && m.Decode(&ended) == nil {
		p.error = ended.Error
	}
}

// RunInfo is what is known of a run besides its log.
type RunInfo struct {
	ID, Name string
	// Status is that of package runlog.
	Status string
	// Definition is the file in the server's folder; empty if it is in none.
	Definition string
	// Looks are those of the agents, by name, that are shown in a way of their own.
	Looks  map[string]Look
	Parent *mark.RunParent
	// Workspace is that of the definition; nil if it has none.
	Workspace *runfiles.Config
	// Language is that of sentences.
	Language prose.Language
	// ReadOnly says that nothing can be done to the run where it is shown.
	ReadOnly bool
}

// Look is how an agent is shown to people: under a name and in a color of its own.
type Look struct {
	Name  string `json:"name,omitzero"`
	Color string `json:"color,omitzero"`
}

// Head is what the page of a run shows above its iterations.
type Head struct {
	Seq int64 `json:"seq"`
	About
	Began   time.Time `json:"began,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
	Error   string    `json:"error,omitzero"`
	// Paused says who has paused the run, and why; nil if it is not paused.
	Paused *Paused `json:"paused,omitzero"`
	// Acts say who has done what to the run.
	Acts []progress.Act `json:"acts,omitzero"`
	Clock
	Keys     Keys         `json:"keys"`
	Sentence *prose.Words `json:"sentence,omitzero"`
	Result   *Result      `json:"result,omitzero"`
	// Files says where the files of the run's workspace went; nil if it has no workspace that can be seen.
	Files       *runfiles.Handed `json:"files,omitzero"`
	Questions   []Question       `json:"questions,omitzero"`
	Findings    []prose.Finding  `json:"findings,omitzero"`
	Checkpoints []Checkpoint     `json:"checkpoints,omitzero"`
	Where       []Spent          `json:"where,omitzero"`
	Overview
	Can Can `json:"can"`
}

// About says what the run is.
type About struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Status     string          `json:"status"`
	Message    string          `json:"message,omitzero"`
	Definition string          `json:"definition,omitzero"`
	Parent     *mark.RunParent `json:"parent,omitzero"`
	Looks      map[string]Look `json:"looks,omitzero"`
}

// Clock is the time of the run, without its pauses.
type Clock struct {
	// Active is the time in which the run was active, which goes on if ClockRunning.
	Active time.Duration `json:"active_ns"`
	// Forked is the time in which the run that this one was forked from had been active; 0 if it was not forked. Limits, tokens
	// and cost count that part too.
	Forked       time.Duration `json:"forked_ns,omitzero"`
	ClockRunning bool          `json:"clock_running,omitzero"`
}

// Overview is what the head shows of the run's loops.
type Overview struct {
	// Loop is the loop to show first, Loops all that can be chosen.
	Loop  *Loop  `json:"loop,omitzero"`
	Loops []Loop `json:"loops,omitzero"`
	// Races are the steps outside of loops whose loops run side by side, with these loops, also without a decision.
	Races     []Step `json:"races,omitzero"`
	Finalizer *Step  `json:"finalizer,omitzero"`
	// Changed are the iterations that may have changed since the last event.
	Changed []Part `json:"changed,omitzero"`
}

// Paused is who asked for the pause, and why. Both may be empty.
type Paused struct {
	By     string `json:"by,omitzero"`
	Reason string `json:"reason,omitzero"`
}

// Keys are the key figures.
type Keys struct {
	Iteration int   `json:"iteration,omitzero"`
	Of        int   `json:"of,omitzero"`
	Best      *Best `json:"best,omitzero"`
	Tokens    int64 `json:"tokens,omitzero"`
	// Cost is nil if none of it is known; CostAtLeast says that a part of it is not.
	Cost        *float64 `json:"cost,omitzero"`
	CostAtLeast bool     `json:"cost_at_least,omitzero"`
	Cache       *Cache   `json:"cache,omitzero"`
}

// Cache is what the provider's prompt cache has done.
type Cache struct {
	// Share is the share of the input that came from the cache, from 0 to 1.
	Share float64 `json:"share"`
	// Saved is how much less the input has cost, as far as prices are known; it is negative if more was paid
	// for writing into the cache than reading has saved.
	Saved float64 `json:"saved,omitzero"`
}

// cacheOf returns nil if no cache was used.
func cacheOf(u progress.Usage) *Cache {
	if u.Cache() == "" {
		return nil
	}
	return &Cache{float64(u.CachedTokens) / float64(u.InputTokens), u.CacheSaved}
}

// Best is the best score.
type Best struct {
	Score     float64 `json:"score"`
	OffBy     float64 `json:"off_by,omitzero"` // its standard error; 0 if unknown
	Iteration int     `json:"iteration"`
}

// Result is what the run has handed back.
type Result struct {
	Text      string `json:"text"`
	By        string `json:"by,omitzero"`
	Iteration int    `json:"iteration,omitzero"`
	Best      bool   `json:"best,omitzero"`
}

// Question is one that a person is asked.
type Question struct {
	mark.Question
	Agent     string `json:"agent,omitzero"`
	Iteration int    `json:"iteration,omitzero"`
}

// Checkpoint is a place from which the run can be forked: after an iteration, or with 0 before the
// first one.
type Checkpoint struct {
	Iteration int      `json:"iteration"`
	Score     *float64 `json:"score,omitzero"`
	OffBy     float64  `json:"off_by,omitzero"` // the standard error of the score; 0 if unknown
	Best      bool     `json:"best,omitzero"`
	Undone    bool     `json:"undone,omitzero"`
	Bytes     int64    `json:"bytes,omitzero"`
}

// Spent is what all runs of a step have taken.
type Spent struct {
	Step   string        `json:"step"`
	Runs   int           `json:"runs"`
	Time   time.Duration `json:"time_ns"`
	Tokens int64         `json:"tokens,omitzero"`
	Cost   *float64      `json:"cost,omitzero"`
}

// Can says which actions the run allows now.
type Can struct {
	Pause  bool `json:"pause,omitzero"`
	Resume bool `json:"resume,omitzero"`
	Retry  bool `json:"retry,omitzero"`
	More   bool `json:"more,omitzero"`
	Cancel bool `json:"cancel,omitzero"`
	Fork   bool `json:"fork,omitzero"`
	Remove bool `json:"remove,omitzero"`
	Answer bool `json:"answer,omitzero"`
}

// Head returns the head at this moment.
func (p *Page) Head(s RunInfo) *Head {
	t := p.Live.Tree()
	h := &Head{
		Seq: p.seq,
		About: About{ID: s.ID, Name: s.Name, Status: s.Status, Message: p.message, Definition: s.Definition, Parent: s.Parent,
			Looks: s.Looks},
		Began: p.began, Updated: t.At, Error: brief.CleanText(p.error),
		Clock: Clock{Active: t.Active(), Forked: t.Forked, ClockRunning: s.Status == string(mark.RunRunning)},
	}
	if s.Workspace != nil {
		h.Files = new(s.Workspace.Handed(p.files))
		for _, text := range []*string{&h.Files.Name, &h.Files.Commit, &h.Files.Command} {
			*text = brief.Clean(*text)
		}
	}
	main := t.Main()
	if !mark.RunStatus(s.Status).IsFinal() {
		for _, q := range p.asked.Open() {
			q.Text = brief.CleanText(q.Text)
			h.Questions = append(h.Questions, Question{q.Question, q.At.Agent(), q.Iteration})
		}
	}
	if t.Root != nil {
		u := t.Root.Usage()
		h.Keys.Tokens = u.Tokens()
		h.Keys.Cost, h.Keys.CostAtLeast = costOf(u)
		h.Keys.Cache = cacheOf(u)
	}
	if main != nil {
		p.shown(h, t, main, s.Language)
	}
	h.Status = statusOf(s.Status, h)
	if h.Loop != nil {
		h.Sentence = &h.Loop.Outlook.Words
	}
	if over(h.Status) {
		h.Where = spending(t)
		if text := p.Watch.Fold.Answer(); text != "" {
			h.Result = result(text, main)
		}
	}
	if h.Status == string(mark.RunIsPaused) {
		h.Paused = p.paused
	}
	for _, a := range p.acts.All() {
		a.By, a.Text = brief.Clean(a.By), brief.Line(a.Text, 200)
		h.Acts = append(h.Acts, a)
	}
	h.Findings = p.Watch.Diagnosis.FindingsIn(s.Language)
	h.Can = can(s, h)
	return h
}

// statusOf is the status as people see it: a limit is not the run's own criterion, and a
// question is more than a pause.
func statusOf(status string, h *Head) string {
	switch {
	case len(h.Questions) > 0 && (status == string(mark.RunWaiting) || status == string(mark.RunRunning)):
		return "asks"
	case status == string(mark.RunCompleted) && h.Loop != nil && h.Loop.Stop != nil && h.Loop.Stop.Kind == "warn":
		return "limit"
	}
	return status
}

func over(status string) bool {
	return slices.Contains([]string{string(mark.RunCompleted), "limit", string(mark.RunFailed), string(mark.RunCanceled)}, status)
}

func can(s RunInfo, h *Head) Can {
	if s.ReadOnly {
		return Can{}
	}
	running := s.Status == string(mark.RunRunning) || s.Status == string(mark.RunWaiting)
	ended := over(h.Status)
	return Can{
		Pause:  s.Status == string(mark.RunRunning),
		Resume: s.Status == string(mark.RunIsPaused) || s.Status == "interrupted" || s.Status == string(mark.RunCanceled),
		Retry:  s.Status == string(mark.RunFailed),
		More:   h.Status == "limit",
		Cancel: running || s.Status == string(mark.RunIsPaused) || s.Status == "interrupted",
		Fork:   h.Loop != nil,
		Remove: ended,
		Answer: len(h.Questions) > 0,
	}
}

func costOf(u progress.Usage) (cost *float64, atLeast bool) {
	if u.Calls == 0 || u.Unknown && u.Cost == 0 {
		return nil, false
	}
	return &u.Cost, u.Unknown
}

// shown is the part of the head that a loop has.
func (p *Page) shown(h *Head, t *progress.Tree, main *progress.Step, lang prose.Language) {
	l := LoopOf(main, t, lang)
	h.Loop = &l
	h.Keys.Iteration, h.Keys.Of = l.Total, l.Outlook.Sentence.Limit
	for i := range l.Points {
		if l.Points[i].Best {
			h.Keys.Best = &Best{*l.Points[i].Score, l.Points[i].OffBy, l.Points[i].Number}
		}
	}
	if rec, best := main.Loop.Stop, h.Keys.Best; rec != nil && best != nil && rec.BestScore != nil && rec.BestIteration == best.Iteration {
		best.Score, best.OffBy = *rec.BestScore, rec.BestError // the mean of all answers about it
	}
	if main.Loop.Finalizer != nil {
		f := stepOf(main.Loop.Finalizer, t.Now, lang)
		h.Finalizer = &f
	}
	h.Checkpoints = p.checkpoints(main)
	h.Changed = append(h.Changed, latest(main, t.Now, lang))
	h.Loops = append(h.Loops, l)
	for s := range abreast(t.Root) {
		for _, lane := range s.Steps {
			if lane == main || lane.Loop == nil {
				continue
			}
			if len(h.Loops) < mostLoops {
				h.Loops = append(h.Loops, LoopOf(lane, t, lang))
			}
			if lane.Status == progress.StatusRunning {
				h.Changed = append(h.Changed, latest(lane, t.Now, lang))
			}
		}
		h.Races = append(h.Races, stepOf(s, t.Now, lang))
	}
	for s := range nestedSteps(main) {
		inner := LoopOf(s, t, lang)
		if n := len(h.Loops); n < mostLoops {
			h.Loops = append(h.Loops, inner)
		}
		if s.Status == progress.StatusRunning {
			h.Changed = append(h.Changed, latest(s, t.Now, lang))
		}
	}
	if len(h.Loops) == 1 {
		h.Loops = nil
	}
}

// mostLoops is how many loops one can choose from.
const mostLoops = 20

// abreast yields the steps outside of loops that have decided a race, or whose loops run side by side.
func abreast(root *progress.Step) iter.Seq[*progress.Step] {
	return func(yield func(*progress.Step) bool) {
		var visit func(*progress.Step) bool
		visit = func(s *progress.Step) bool {
			if s.Loop != nil {
				return true
			}
			if (s.Race != nil || overlap(s.Steps)) && !yield(s) {
				return false
			}
			for _, c := range s.Steps {
				if !visit(c) {
					return false
				}
			}
			return true
		}
		if root != nil {
			visit(root)
		}
	}
}

// overlap reports whether two loops among the steps ran at the same time.
func overlap(steps []*progress.Step) bool {
	var before *progress.Step
	for _, s := range steps {
		if s.Loop == nil || s.Address == "" {
			continue
		}
		if before != nil && (before.Status == progress.StatusRunning || s.Began < before.Ended) {
			return true
		}
		if before == nil || s.Ended > before.Ended {
			before = s
		}
	}
	return false
}

// nestedSteps yields the loops within the iterations that may still change.
func nestedSteps(main *progress.Step) iter.Seq[*progress.Step] {
	return func(yield func(*progress.Step) bool) {
		its := main.Loop.Iterations
		for _, it := range its[max(0, len(its)-1):] {
			for _, s := range it.Steps {
				for l := range s.Loops() {
					if l.Address != "" && !yield(l) {
						return
					}
				}
			}
		}
	}
}

// checkpoints are the last places to fork from, the newest first, and the one before the first.
func (p *Page) checkpoints(main *progress.Step) []Checkpoint {
	var out []Checkpoint
	l := main.Loop
	best := l.Best()
	for _, it := range slices.Backward(l.Iterations) {
		if it.Record == nil {
			continue
		}
		if len(out) == 20 && it != best {
			continue
		}
		out = append(out, Checkpoint{Iteration: it.Number, Score: it.Record.Score, OffBy: it.Record.Error, Best: it == best,
			Undone: it.RolledBack, Bytes: it.Record.StateSize})
	}
	if _, begun := p.spans[main.Address+"[1]"]; begun {
		out = append(out, Checkpoint{})
	}
	return out
}

// spending sums what each agent has taken, in the order in which they ran first.
func spending(t *progress.Tree) []Spent {
	var out []Spent
	index := make(map[string]int)
	var visit func(s *progress.Step)
	visit = func(s *progress.Step) {
		leaf := true
		for c := range s.Children() {
			leaf = false
			visit(c)
		}
		if !leaf || s.Address == "" {
			return
		}
		name := s.Address.Agent()
		i, ok := index[name]
		if !ok {
			i = len(out)
			index[name] = i
			out = append(out, Spent{Step: name})
		}
		u := s.Usage()
		out[i].Runs++
		out[i].Time += s.Took(t.Now)
		out[i].Tokens += u.Tokens()
		if cost, _ := costOf(u); cost != nil {
			if out[i].Cost != nil {
				*cost += *out[i].Cost
			}
			out[i].Cost = cost
		}
	}
	if t.Root != nil {
		visit(t.Root)
	}
	return out
}

func result(text string, main *progress.Step) *Result {
	r := &Result{Text: brief.CleanText(text)}
	if main == nil || main.Loop.Stop == nil {
		return r
	}
	st := main.Loop.Stop
	r.Iteration = st.Result.Iteration
	switch st.Result.Source {
	case loop.FromFinalizer:
		if f := main.Loop.Finalizer; f != nil {
			r.By = f.Name
		}
	case loop.FromBest:
		r.Best = true
	}
	return r
}
