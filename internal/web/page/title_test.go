// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// U11: the title of a tab that cannot be seen says that its run has ended.
func TestTheTitleOfAHiddenTabSaysThatTheRunHasEnded(t *testing.T) {
	s := serve(t, map[string]string{"steady.yaml": steady})
	p := open(t, s)
	p.visit("/runs/" + s.start(t, "steady"))
	p.until("the run in the title", `document.title.startsWith('●')`)
	p.js(`Object.defineProperty(document, 'hidden', {get: () => true}); document.dispatchEvent(new Event('visibilitychange')); true`)
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.until("the end in the title", `document.title.startsWith('■')`)
}

// U11: who has switched it on is told by the browser that a run has ended; nobody is told before.
func TestANotificationSaysThatTheRunHasEnded(t *testing.T) {
	s := serve(t, map[string]string{"steady.yaml": steady})
	p := open(t, s)
	call(p, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: "granted", Origin: s.url,
		BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID})
	p.visit("/runs/" + s.start(t, "steady"))
	p.js(`document.hasFocus = () => false; window.told = []; window.Notification = class extends Notification { constructor(title, o) { super(title, o); told.push(title + ' | ' + o.body) } }; true`)
	p.until("it to be off", `[...document.querySelectorAll('.acts button')].find(b => b.innerText === 'Notify me')?.getAttribute('aria-pressed') === 'false'`)
	p.press("Notify me")
	p.until("it to be on", `[...document.querySelectorAll('.acts button')].find(b => b.innerText === 'Notifies you')?.getAttribute('aria-pressed') === 'true' && localStorage.getItem('notify') === 'on'`)
	p.accessible("notify")
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.until("the notification", `told.length === 1 && told[0].startsWith('steady: at a limit | Stopped after')`)
}
