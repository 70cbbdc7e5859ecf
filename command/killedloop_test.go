// SPDX-License-Identifier: Apache-2.0

//go:build linux

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// clerkLoop has calls of every effect, by steps and by the tools of models: side by
// side, in a loop in the loop, and beside a branch that fails, under a budget of model
// calls. Each call is told its job, which no other call of the run has.
const clerkLoop = `
name: shop
model: openai/clerk
max_iterations: 3
budget: {calls: CALLS}
on_error: next_iteration
inputs: {run: nobody}
shapes:
  boom_job: &job {pattern: '[-\w./]+'}
  order_job: *job
state: {receipts: [], orders: []}
sub_agents:
  - name: jobs
    set:
      pass: iteration
      wire_job: 'state.run + "/" + string(iteration) + "/wire"'
      post_job: 'state.run + "/" + string(iteration) + "/post"'
      boom_job: 'state.run + "/" + string(iteration) + "/boom"'
  - {name: plan, instructions: "Task {{run}}/{{iteration}}/plan.", output_key: planned, can_exit_loop: false, tools: [TOOLS-plan]}
  - name: race
    type: parallel
    sub_agents:
      - name: ask
        instructions: "Task {{run}}/{{iteration}}/ask."
        output_key: asked
        can_exit_loop: false
        tools: [TOOLS-ask]
      - name: talk
        instructions: "Task {{run}}/{{iteration}}/talk."
        output_key: talked
        can_exit_loop: false
        tools: [TOOLS-talk]
      - {name: post, url: "WITNESS/effects/post", method: POST, body: "{{post_job}}", output_key: posted}
      - {name: boom, command: [./effect.sh, boom, "{{boom_job}}"], output_key: boomed}
  - name: inner
    max_iterations: 2
    sub_agents:
      - {name: name_it, set: {order_job: 'state.run + "/" + string(state.pass) + "." + string(iteration) + "/order"'}}
      - name: order
        command: [./effect.sh, order, "{{order_job}}"]
        effect: {at_most_once: true, reconcile: {url: "WITNESS/done/{{call_id}}"}}
        output_key: ordered
      - {name: book, set: {orders: 'state.orders + [state.ordered]'}, effect: transactional}
  - name: wire
    url: "WITNESS/effects/wire"
    method: POST
    body: "{{wire_job}}"
    effect: {at_most_once: true, reconcile: {url: "WITNESS/done/{{call_id}}"}}
    output_key: wired
  - {name: note, set: {receipts: 'state.receipts + [state.wired]'}, effect: transactional}
  - {name: tell, text: "{{receipts}} {{orders}}", output_key: loop_output}
`

// clerkEffects are the effects of the models' tools: commands that read their job on
// standard input.
var clerkEffects = map[string]string{
	"look": "pure", "reserve": "idempotent", "fee": "at_most_once", // a person resolves it
	"pay": `{at_most_once: true, reconcile: {url: "WITNESS/done/{{call_id}}"}}`,
}

// clerkTool is a tool in the definition. Its name has the agent's in front.
func clerkTool(agent, tool string) string {
	return fmt.Sprintf(`{command: [./effect.sh, %s], name: %s_%s, description: "Does it.", effect: %s, `+
		`parameters: {type: object, properties: {job: {type: string}}, required: [job]}}`, tool, agent, tool, clerkEffects[tool])
}

// effectScript writes into a file that the witness reads: what is done, by which call,
// and for which job. The branch that is to fail fails in each second iteration.
const effectScript = `#!/bin/sh
job=$2
if [ -z "$job" ]; then job=$(sed 's/.*"job": *"\([^"]*\)".*/\1/'); fi
sleep 0.01
printf '%s %s %s\n' "$1" "$REFRAIN_CALL_ID" "$job" >> effects
sleep 0.01
case $job in */2/boom) echo "no luck" >&2; exit 1;; esac
printf 'done %s' "$job"
`

// writeClerk writes the definition into a folder.
func writeClerk(t testing.TB, dir, witness string, calls int) {
	t.Helper()
	text := strings.ReplaceAll(clerkLoop, "CALLS", strconv.Itoa(calls))
	for agent, turns := range clerkTurns {
		var tools []string
		for _, tool := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(turns...)))) {
			tools = append(tools, clerkTool(agent, tool))
		}
		text = strings.ReplaceAll(text, "TOOLS-"+agent, strings.Join(tools, ", "))
	}
	text = strings.ReplaceAll(text, "WITNESS", witness)
	for name, text := range map[string]string{"loop" + strconv.Itoa(calls) + ".yaml": text, "effect.sh": effectScript} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

// clerkTurns are the tools that each model calls, turn by turn, before it says that it
// is done.
var clerkTurns = map[string][][]string{
	"plan": {{"look", "reserve"}, {"pay"}, {"fee"}},
	"ask":  {{"reserve", "pay"}, {"pay"}},
	"talk": {{"look"}, {"reserve"}},
}
