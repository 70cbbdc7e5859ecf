// SPDX-License-Identifier: Apache-2.0

package dialect

import "github.com/refrain-dev/refrain/definition"

// hints say what to do about a problem of the definition in the file that it was
// made of. Where a product has nothing for it, that is said, and what to write
// when it is a definition.
var hints = map[Dialect]map[string]string{
	ADK: {
		definition.CodeEndless: "give the LoopAgent max_iterations, or an agent in it tools: [{name: exit_loop}]; refrain import makes a file in which stop_when and timeout can be written",
		definition.CodeAnyone:  "give tools: [{name: exit_loop}] to the agent that decides",
		definition.CodeModel:   "write model: as ADK knows it, such as gemini-2.5-flash or openai/gpt-4.1-mini; doc/models.md lists the providers",
	},
	Evo: {
		definition.CodeEndless: "give the loop max_iterations, or name an agent in it in agents_exit_loop; refrain import makes a file in which stop_when and timeout can be written",
		definition.CodeAnyone:  "name the agent that decides in the loop's agents_exit_loop",
		definition.CodeModel:   "write model as provider/name, such as gemini/gemini-2.0-flash; doc/models.md lists the providers",
	},
	Robomotion: {
		definition.CodeEndless: "give the Loop Agent Max Iterations or a Timeout",
		definition.CodeAnyone:  "no option of the node says who ends the loop; refrain import makes a file in which can_exit_loop or stop_when can be written",
		definition.CodeModel:   "choose the model in the LLM Agent as provider/name; doc/models.md lists the providers",
	},
}

// hint is what to do about a problem in the file; empty if nothing comes to mind.
func (i *importer) hint(p *definition.Problem) string {
	if h := hints[i.opts.Dialect][p.Code]; h != "" || p.Hint == "" {
		return h
	}
	return "in a definition, which refrain import makes: " + p.Hint
}
