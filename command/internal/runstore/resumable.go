// SPDX-License-Identifier: Apache-2.0

package runstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/refrain-dev/refrain/program"
	"github.com/refrain-dev/refrain/session"
	"github.com/refrain-dev/refrain/session/sqlite"
	"github.com/refrain-dev/refrain/supervisor"
)

// HowToResume says how a run that nobody drives goes on: the command to type, or why
// there is none. Whoever tells people to resume a run says this.
func HowToResume(view *session.View, id string) string {
	by, flags, err := resumable(view)
	if err != nil {
		return cannotResume(id, err)
	}
	return "Resume with: " + by + " resume " + id + flags
}

func cannotResume(id string, why error) string {
	return fmt.Sprintf("refrain cannot resume run %s: %v", id, why)
}

// HowToResumeIn is HowToResume for a run of a store.
func HowToResumeIn(ctx context.Context, store session.Service, id string) string {
	if err := writable(store); err != nil {
		return cannotResume(id, err)
	}
	view, err := get(context.WithoutCancel(ctx), store, id, 0)
	if err != nil {
		return cannotResume(id, err)
	}
	return HowToResume(view, id)
}

// HowToResume is that of the run: one in a file goes into a store first.
func (r *Run) HowToResume() string {
	if r.Store != nil {
		if err := writable(r.Store); err != nil {
			return cannotResume(r.ID, err)
		}
		return HowToResume(r.View(), r.ID)
	}
	view := session.NewView(session.ViewConfig{State: make(map[string]any)})
	for _, ev := range r.Events {
		view.Apply(ev)
	}
	if _, _, err := resumable(view); err != nil {
		return cannotResume(r.ID, err)
	}
	return "Take it into a store with: refrain import " + r.File.Name
}

// writable returns why no run of a store can go on; nil for a store that can be written.
func writable(store session.Service) error {
	if s, ok := store.(*sqlite.Service); ok && s.ReadOnly() {
		return errors.New("its store is read-only here; copy the database to a folder that you can write, and name " +
			"the copy with --store")
	}
	return nil
}

// resumable returns the name of the program that resumes a run, and the flags that its verb resume needs, as far as the run
// alone tells, and why; the error says why the run cannot go on at all.
func resumable(view *session.View) (by, flags string, err error) {
	started, err := supervisor.StartedWith(view)
	if errors.Is(err, supervisor.ErrNotFound) {
		return "", "", errors.New("it was not started by refrain run")
	}
	if err != nil {
		return "", "", err
	}
	p, err := program.Decode(started)
	if err != nil {
		return "", "", err
	}
	var why []string
	if _, err := p.Definition(); err != nil && p.Program == "" { // a program of one's own has the models that it names
		flags = " --definition FILE"
		why = append(why, "its own definition cannot be read here")
	}
	if r := session.RunOf(view); r != nil {
		if _, ok := QueueOf(r.Driver); ok {
			p.Dir, p.Root = ".", "." // the folder is its workers'
		}
	}
	for _, dir := range []string{p.Dir, p.Root} {
		if program.IsFolder(dir) != nil {
			flags += " --dir FOLDER"
			why = append(why, "its folder "+dir+" is not here")
			break
		}
	}
	if why != nil {
		flags += " (" + strings.Join(why, "; ") + ")"
	}
	return cmp.Or(p.Program, "refrain"), flags, nil
}
