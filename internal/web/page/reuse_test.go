// SPDX-License-Identifier: Apache-2.0

package webui_test

import "testing"

// U6, U12: an agent of the folder is a step twice; the second gets a name that is free, and each has its own name,
// key, permission, policy and delays, in the page's languages.
func TestAFileIsUsedTwice(t *testing.T) {
	s := serve(t, map[string]string{
		"critic.yaml": "name: critic\nmodel: openai/x\ninstructions: Judge {{draft?}}\noutput_key: review\n",
		"story.yaml": `name: story
model: openai/x
sub_agents:
  - {name: writer, instructions: "Write", output_key: draft}
  - {name: critic_2, text: "in between"}
  - ref: critic.yaml
`})
	p := open(t, s)
	p.visit("/definitions/story")
	mark := func(step string) string {
		return `document.querySelector('[data-step="` + step + `"] .bar1')?.innerText.includes('may stop')`
	}
	p.until("no permission in the file", mark("critic")+` === false`)
	p.press("Open critic")
	p.until("its name", `document.querySelector('#f-sub_agents_2_-name')?.placeholder === 'critic'`)
	for _, is := range []string{"true", "false"} {
		p.js(`document.querySelector('#f-sub_agents_2_-can_exit_loop').click()`)
		p.until("the permission "+is, mark("critic")+` === `+is)
	}

	p.press("Add a step…")
	p.choose("Kind", "agent of this folder")
	p.until("a name that is free", `document.querySelector('dialog input[name=step]')?.value === 'critic_3'`)
	p.accessible("reuse")
	p.js(`document.querySelector('dialog[open] form').requestSubmit()`)
	p.until("the second use", `!!document.activeElement.closest('[data-step="critic_3"]')`)
	p.js(`document.querySelector('#f-sub_agents_3_-can_exit_loop').click()`)
	p.until("its permission", mark("critic_3")+` && !`+mark("critic")+` && document.querySelector('#f-sub_agents_3_-can_exit_loop').checked`)
	p.fill("Output key", "second_review")
	p.fill("Delay before", "2s")
	p.fill("Delay after", "3s")
	p.choose("On error", "skip_step")
	p.until("its key", `document.querySelector("[data-step=critic_3] .bar1").textContent.includes("→ second_review")`)
	p.shows("Instructions", true) // of the whole
	p.until("no field of the file", `!document.querySelector('#f-sub_agents_3_-instructions')`)
	p.press("Save")
	p.saved()
	p.reads("story.yaml", "can_exit_loop: false", "can_exit_loop: true", "name: critic_3", "output_key: second_review",
		"delay_before: 2s", "delay_after: 3s", "on_error: skip_step")

	p.press("Português")
	for _, field := range []string{"Nome", "Chave da saída", "Pode encerrar o laço", "Quando falha", "Pausa antes", "Pausa depois"} {
		p.shows(field, true)
	}
}
