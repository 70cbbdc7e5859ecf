// SPDX-License-Identifier: Apache-2.0

//go:build linux

package temporal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/genai"

	"github.com/refrain-dev/refrain/internal/history/runlog"
	"github.com/refrain-dev/refrain/internal/runs/program"
	"github.com/refrain-dev/refrain/loop"
	"github.com/refrain-dev/refrain/session/lease"
	"github.com/refrain-dev/refrain/session/mark"
	"github.com/refrain-dev/refrain/supervisor"
	"github.com/refrain-dev/refrain/temporal"
)

// shop has loops in a loop, one of them in a parallel agent, commands of every effect, here and on another
// task queue, and a question.
const shop = `name: shop
max_iterations: 3
state: {orders: [], shipped: []}
shapes:
  left_job: &job {pattern: '[a-z]+[0-9.]+'}
  right_job: *job
  far_job: *job
  order_job: *job
  wire_job: *job
  ship_job: *job
sub_agents:
  - name: jobs
    set:
      pass: iteration
      left_job: '"left" + string(iteration)'
      order_job: '"order" + string(iteration)'
      wire_job: '"wire" + string(iteration)'
      far_job: '"far" + string(iteration)'
      ship_job: '"ship" + string(iteration)'
  - name: both
    type: parallel
    sub_agents:
      - {name: left, command: [./effect.sh, "{{left_job}}"], output_key: left_done}
      - name: right
        max_iterations: 2
        sub_agents:
          - {name: count, set: {right_job: '"right" + string(state.pass) + "." + string(iteration)'}}
          - {name: look, command: [./effect.sh, "{{right_job}}"], output_key: right_done, effect: pure}
      - {name: far, command: [./effect.sh, "{{far_job}}"], dir: RUN, output_key: far_done, task_queue: far}
  - name: order
    command: [./effect.sh, "{{order_job}}"]
    effect: at_most_once
    output_key: ordered
  - name: wire
    command: [./effect.sh, "{{wire_job}}"]
    dir: RUN
    effect: at_most_once
    task_queue: far
    output_key: wired
  - {name: book, set: {orders: 'state.orders + [state.ordered + state.wired + state.far_done]'}, effect: transactional}
  - name: boss
    question: "Ship {{pass}}?"
    ask: approve
    output_key: review
  - name: ship
    command: [./effect.sh, "{{ship_job}}"]
    effect: {at_most_once: true, reconcile: {command: [./done.sh]}}
    output_key: ship_done
  - {name: note, set: {shipped: 'state.shipped + [state.ship_done]'}, effect: transactional}
`

// effectScript has an effect, which the file says: which job, and under which call ID.
const effectScript = `#!/bin/sh
[ -n "$1" ] || exit 1
sleep 0.05
printf '%s %s\n' "$1" "$REFRAIN_CALL_ID" >>effects
sync effects
sleep 0.1
printf 'done %s' "$1"
`

// doneScript says whether a call has taken place: it did not if nobody is about to make it any more.
const doneScript = `#!/bin/sh
for _ in 1 2; do
	while grep -qs "REFRAIN_CALL_ID=$REFRAIN_CALL_ID" $(grep -ls 'effect[.]sh' /proc/[0-9]*/cmdline | sed s/cmdline/environ/) /dev/null; do
		sleep 0.02
	done
	sleep 0.02
done
touch effects
while read -r job id; do
	if [ "$id" = "$REFRAIN_CALL_ID" ]; then printf 'done %s' "$job"; exit 0; fi
done <effects
[ ! -e ../frozen ] || exit 2
exit 1
`

// trial is a run under attack.
type trial struct {
	*campaign
	id, dir string
	dice    *rand.Rand             // the shepherd's
	rests   atomic.Bool            // somebody pauses it
	ended   chan struct{}          // closed when it is over
	alone   *supervisor.Supervisor // that drives it, without Temporal
	saw     sight
}

// sight is what can be seen of a run when it is over.
type sight struct {
	status     mark.RunStatus
	state      map[string]any
	iterations []string
	jobs       []string
}

// trial makes the folder of a run.
func (k *campaign) trial() *trial {
	k.Helper()
	n := len(k.trials)
	r := &trial{campaign: k, dir: filepath.Join(k.dir, fmt.Sprint("run", n)), ended: make(chan struct{}),
		dice: rand.New(rand.NewPCG(*drawn, uint64(n)+2))}
	loop := strings.ReplaceAll(shop, "RUN", filepath.Base(r.dir)) // the other workers have the folder above
	if n == 0 {                                                   // the undisturbed one has no cluster
		loop = strings.NewReplacer("dir: RUN, ", "", ", task_queue: far", "", "dir: RUN\n", "\n", "task_queue: far\n", "\n").Replace(shop)
	}
	err := os.Mkdir(r.dir, 0o700)
	for name, text := range map[string]string{"loop.yaml": loop, "effect.sh": effectScript, "done.sh": doneScript} {
		if err == nil {
			err = os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o700)
		}
	}
	if err != nil {
		k.Fatal(err)
	}
	k.trials = append(k.trials, r)
	return r
}

func (r *trial) request() supervisor.Request {
	r.Helper()
	r.id = filepath.Base(r.dir)
	p := &program.Program{Dir: r.dir, Root: r.dir}
	def, err := p.Read(filepath.Join(r.dir, "loop.yaml"))
	if err != nil {
		r.Fatal(err)
	}
	started, err := p.Started(def)
	if err != nil {
		r.Fatal(err)
	}
	state, err := def.InitialState(nil)
	if err != nil {
		r.Fatal(err)
	}
	return supervisor.Request{SessionID: r.id, Message: genai.NewContentFromText("go", genai.RoleUser), State: state,
		Started: started}
}

// begin starts a run on the cluster.
func (k *campaign) begin() *trial {
	k.Helper()
	r := k.trial()
	if _, err := temporal.Start(k.Context(), k.Client, k.sup, r.request(), options); err != nil {
		k.Fatal(err)
	}
	return r
}

// standing is how the run stands, as soon as the database can be asked.
func (r *trial) standing() supervisor.Status {
	for {
		st, err := r.sup.Status(r.Context(), r.id)
		if err == nil || r.Context().Err() != nil {
			return st
		}
	}
}

func (r *trial) seq() int64 { return r.standing().Seq }

func (r *trial) over() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

// next waits for the first event after seq.
func (r *trial) next(seq int64) {
	for r.Context().Err() == nil {
		for _, err := range r.sup.Watch(r.Context(), r.id, seq) {
			if err == nil {
				return
			}
			break
		}
	}
}

// passes waits for n more events. It returns true if the run ends or waits before.
func (r *trial) passes(n int) bool {
	st := r.standing()
	for end := st.Seq + int64(n); st.Seq < end; st = r.standing() {
		if st.Run.Status.IsFinal() || st.Run.Status == mark.RunWaiting || r.Failed() {
			return true
		}
		r.next(st.Seq)
	}
	return false
}

// taken is when somebody drove the run again whose last event was seq, and has come to a step; zero if
// it was over, or waits.
func (r *trial) taken(seq int64) (at time.Time) {
	for ev, err := range r.sup.Watch(r.Context(), r.id, seq) {
		switch {
		case err != nil || ev.Mark == nil:
		case ev.Mark.Kind == mark.KindRunEnded || ev.Mark.Kind == mark.KindRunPaused:
			return time.Time{}
		case ev.Mark.Kind == mark.KindRunTaken:
			at = time.Now()
		case !at.IsZero() && ev.Address != "":
			return time.Now()
		}
		if err != nil {
			return time.Time{}
		}
	}
	return time.Time{}
}

// shepherd answers what a run asks, until it is over.
func (r *trial) shepherd() {
	defer close(r.ended)
	for r.Context().Err() == nil && !r.Failed() {
		st := r.standing()
		switch {
		case st.Run.Status.IsFinal():
			return
		case st.Run.Status == mark.RunWaiting:
			if r.answer() {
				continue
			}
		case st.Run.Status == mark.RunIsPaused && !st.Run.HandOver && !r.rests.Load():
			if now := r.standing(); now.Seq == st.Seq && !r.rests.Load() {
				r.Errorf("nobody has paused run %s, and it is %+v", r.id, st)
			}
		}
		r.next(st.Seq)
	}
}

var askedAbout = regexp.MustCompile(`its call ID is (call-[a-z0-9]+)`)

// answer answers a question of the run. It returns false if there is none.
func (r *trial) answer() bool {
	open, err := r.sup.Questions(r.Context(), r.id)
	if err != nil || len(open) == 0 {
		return err != nil // the database is away
	}
	q := open[r.dice.IntN(len(open))]
	a := mark.Answer{ID: q.ID, Value: []byte("true"), By: "ana"}
	if q.Kind == mark.AskResolution {
		id := askedAbout.FindStringSubmatch(q.Text)
		if id == nil {
			r.Errorf("run %s asks %q", r.id, q.Text)
			return false
		}
		res := mark.Resolution{Action: mark.ResolveRetry}
		if job := r.find(id[1]); job != "" {
			res = mark.Resolution{Action: mark.ResolveResult, Result: "done " + job}
		}
		if a.Value, err = json.Marshal(res); err != nil {
			r.Error(err)
		}
	}
	way := "by the store"
	if r.alone == nil && r.dice.IntN(2) == 0 {
		way = "by Temporal"
		_, err = temporal.Ask(r.Context(), r.Client, r.id, temporal.Request{Do: temporal.Answer, Answer: &a}, options)
	} else {
		_, err = r.sup.Answer(r.Context(), r.id, a)
	}
	if err == nil && r.alone != nil {
		_, err = r.alone.Resume(r.Context(), r.id, supervisor.ResumeOptions{})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers[string(q.Kind)+" "+way]++; err != nil {
		r.answers["failed "+way]++ // it is asked again
		r.Logf("answer run %s: %v", r.id, err)
	}
	return true
}

// find is the job that was done under a call ID; "" if none was, and none will be.
func (r *trial) find(id string) string {
	r.frozen.RLock()
	defer r.frozen.RUnlock()
	for range 2 { // a command may be just about to begin
		for makes(id) {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, e := range r.effects() {
		if e[1] == id {
			return e[0]
		}
	}
	return ""
}

// makes reports whether a process makes a call.
func makes(id string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range all {
		env, err := os.ReadFile(path)
		if err == nil && bytes.Contains(env, []byte("REFRAIN_CALL_ID="+id)) {
			return true
		}
	}
	return false
}

// effects are jobs with the call IDs under which they were done.
func (r *trial) effects() (all [][]string) {
	text, err := os.ReadFile(filepath.Join(r.dir, "effects"))
	if err != nil && !os.IsNotExist(err) {
		r.Error(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 {
			all = append(all, f)
			continue
		}
		r.Errorf("an effect without a job or a call ID: %q", line)
	}
	return all
}

// judge demands of a run that is over what is promised, and the result of the undisturbed one.
func (r *trial) judge() {
	r.Helper()
	ids, jobs, times := make(map[string]string), make(map[string]string), make(map[string]int)
	for _, e := range r.effects() {
		job, id := e[0], e[1]
		if was := ids[job]; was != "" && was != id {
			r.Errorf("run %s: %s was done under two IDs, %s and %s", r.id, job, was, id)
		}
		if was := jobs[id]; was != "" && was != job {
			r.Errorf("run %s: two things were done under %s, %s and %s", r.id, id, was, job)
		}
		ids[job], jobs[id] = id, job
		if times[job]++; times[job] == 2 && (strings.HasPrefix(job, "order") || strings.HasPrefix(job, "ship") ||
			strings.HasPrefix(job, "wire")) {
			r.Errorf("run %s: %s must not be done twice, and was (%s)", r.id, job, id)
		}
		r.saw.jobs = append(r.saw.jobs, job)
	}
	slices.Sort(r.saw.jobs)
	r.saw.jobs = slices.Compact(r.saw.jobs)
	log, err := runlog.Read(r.Context(), r.store, lease.Key{AppName: "refrain", UserID: "refrain", SessionID: r.id})
	if err == nil {
		_, err = log.Sound()
	}
	if err != nil {
		r.Errorf("run %s: %v", r.id, err)
		return
	}
	gone := log.View().Log().Superseded()
	for _, ev := range log.Log() {
		if ev.Mark == nil || ev.Mark.Kind != mark.KindIterationFinished || gone.Has(ev.Seq) {
			continue
		}
		var rec loop.IterationRecord
		if err := log.Wholes.Of(ev).Mark.Decode(&rec); err != nil {
			r.Error(err)
		}
		r.saw.iterations = append(r.saw.iterations, fmt.Sprint(ev.Address, " ", rec.Number, " ", rec.Complete, rec.Rejected))
	}
	slices.Sort(r.saw.iterations)
	r.saw.status = r.standing().Run.Status
	if r.saw.state = log.StateAfter(r.seq()); r.alone != nil {
		return
	}
	if !reflect.DeepEqual(r.saw, r.want) {
		r.Errorf("run %s: seen\n%+v\nwant\n%+v", r.id, r.saw, r.want)
	}
	if st, err := r.result(r.id); err != nil || st.Status != mark.RunCompleted {
		r.Errorf("the workflow of run %s ends with %+v, %v", r.id, st, err)
	}
}
