// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdpruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/refrain-dev/refrain/internal/runs/operations"
	"github.com/refrain-dev/refrain/internal/testkit/longtest"
	"github.com/refrain-dev/refrain/internal/web/page"
	"github.com/refrain-dev/refrain/server"
	"github.com/refrain-dev/refrain/session"
)

// patience is how long a browser may take for one thing on a machine that is busy.
const patience = 2 * time.Minute

// chrome finds Chromium. In CI it has to be there.
func chrome(t *testing.T) string {
	t.Helper()
	longtest.WithoutRace(t) // most of the work is the browser's; package server has the race detector
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("REFRAIN_CI") != "" {
		t.Fatal("no Chromium: .ci/debian chromium chromium installs it")
	}
	t.Skip("no Chromium on this machine; on Debian: apt-get install chromium")
	return ""
}

// site is a server with the page, and a folder of definitions.
type site struct {
	url, dir, token string
	server          *server.Server
}

func serve(t *testing.T, files map[string]string, change ...func(*server.Config)) *site {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cfg := server.Config{
		Config: operations.Config{Service: session.InMemoryService(), AppName: "refrain", UserID: "user", Dir: dir,
			Log: slog.New(slog.DiscardHandler)},
		Page: webui.Handler(webui.Files()),
	}
	for _, f := range change {
		f(&cfg)
	}
	srv, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := errors.Join(srv.Shutdown(ctx), <-done); err != nil {
			t.Error(err)
		}
	})
	return &site{url: "http://" + l.Addr().String(), dir: dir, token: cfg.Token, server: srv}
}

// tab is a tab with a profile of its own. What the page complains of fails the test, and so does a
// request to another host.
type tab struct {
	*testing.T
	ctx  context.Context
	site *site

	mu    sync.Mutex
	wrong []string
}

func open(t *testing.T, s *site) *tab {
	t.Helper()
	ctx, end := newTab(t)
	tb := &tab{T: t, ctx: ctx, site: s}
	t.Cleanup(func() {
		if t.Failed() {
			tb.picture("failed")
		}
		tb.mu.Lock()
		for _, w := range tb.wrong {
			t.Error("the page:", w)
		}
		tb.mu.Unlock()
		end()
	})
	if err := chromedp.Listen(ctx, tb.hear); err != nil {
		t.Fatal(err)
	}
	call(tb, network.Enable, network.EnableParams{})
	call(tb, cdplog.Enable, cdp.Empty{})
	call(tb, cdpruntime.Enable, cdp.Empty{})
	return tb
}

// chromium is the one browser that all tests open their tabs in. It is started for the first of them.
var chromium struct {
	sync.Mutex
	ctx context.Context
	end func()
}

func TestMain(m *testing.M) {
	status := m.Run()
	if chromium.end != nil {
		chromium.end()
	}
	os.Exit(status)
}

// newTab opens a tab in a profile of its own. On a busy machine Chromium sometimes ends while it starts, so it gets three
// attempts. So does one that has ended since.
func newTab(t *testing.T) (tab context.Context, end func()) {
	t.Helper()
	path := chrome(t)
	chromium.Lock()
	defer chromium.Unlock()
	for attempt := 1; ; attempt++ {
		err := startBrowser(path)
		if err == nil {
			ctx, cancel := chromedp.NewContext(chromium.ctx, chromedp.WithNewBrowserContext())
			_, err = chromedp.Call(ctx, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
			if err == nil {
				return ctx, cancel
			}
			cancel()
		}
		chromium.end()
		chromium.end = nil
		if attempt == 3 {
			t.Fatal(err)
		}
		t.Log(err)
	}
}

// startBrowser starts the browser, unless it runs.
func startBrowser(path string) error {
	if chromium.end != nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "refrain-browser-")
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.Flag("disable-quic", true), chromedp.Flag("ignore-certificate-errors", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("force-device-scale-factor", "1"), chromedp.UserDataDir(dir), chromedp.WindowSize(1440, 1000),
		chromedp.WSURLReadTimeout(patience))
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), flags...)
	ctx, cancel := chromedp.NewContext(alloc)
	chromium.ctx, chromium.end = ctx, func() {
		_ = chromedp.Cancel(ctx) // one that has ended already is what is wanted
		cancel()
		cancelAlloc()
		_ = os.RemoveAll(dir)
	}
	if err == nil {
		_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{}) // the first call starts it
	}
	return err
}

// call sends a command to the browser.
func call[P, R any](t *tab, cmd cdp.Command[P, R], params P) R {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	res, err := chromedp.Call(ctx, cmd, params)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func (t *tab) hear(ev any) {
	say := func(format string, args ...any) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.wrong = append(t.wrong, fmt.Sprintf(format, args...))
	}
	switch ev := ev.(type) {
	case *cdpruntime.EventExceptionThrown:
		say("%s", exception(ev.ExceptionDetails))
	case *cdpruntime.EventConsoleAPICalled:
		if ev.Type == "error" || ev.Type == "warning" {
			var words []string
			for _, a := range ev.Args {
				words = append(words, string(a.Value)+a.Description)
			}
			say("console: %s", strings.Join(words, " "))
		}
	case *cdplog.EventEntryAdded:
		// An answer of 4xx is the server's way to say no, which tests ask for.
		if ev.Entry.Level == "error" && ev.Entry.Source != "network" {
			say("log: %s %s", ev.Entry.Text, ev.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if u := ev.Request.URL; !strings.HasPrefix(u, t.site.url) && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "blob:") {
			say("a request to %s", u)
		}
	}
}

func (t *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatalf("%v\nthe page says:\n%s", err, t.text())
	}
}

// js runs an expression in the page.
func (t *tab) js(expression string) {
	t.Helper()
	if _, err := eval[any](t, expression); err != nil {
		t.Fatalf("%s: %v\nthe page says:\n%s", expression, err, t.text())
	}
}

// eval is the value of an expression in the page, or of the promise that it is.
func eval[R any](t *tab, expression string) (R, error) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[R](expression, chromedp.EvalAwaitPromise))
}

// text is all that can be read on the page.
func (t *tab) text() string {
	all, err := eval[string](t, `document.body ? document.body.innerText : ''`)
	if err != nil {
		return err.Error()
	}
	return all
}

func (t *tab) visit(path string) {
	t.Helper()
	t.do(chromedp.Navigate(t.site.url+path), chromedp.WaitVisible("main"))
}

// sees waits until the page has a text.
func (t *tab) sees(text string) {
	t.Helper()
	t.until(fmt.Sprintf("%q to be seen", text), `document.body.innerText.includes(`+quote(text)+`)`)
}

func (t *tab) seesNot(text string) {
	t.Helper()
	t.until(fmt.Sprintf("%q to be gone", text), `!document.body.innerText.includes(`+quote(text)+`)`)
}

// until waits for a condition in the page, which may be loading.
func (t *tab) until(what, condition string) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(30 * time.Millisecond) {
		if ok, err := eval[bool](t, condition); err == nil && ok {
			return
		}
	}
	t.Fatalf("waited for %s\nthe page says:\n%s", what, t.text())
}

// press clicks the button or link with a name.
func (t *tab) press(name string) {
	t.Helper()
	find := `[...document.querySelectorAll('button, a, summary, [role=tab], label.sw, label.pick')].filter(b => b.offsetParent !== null && !b.disabled && ((b.getAttribute('aria-label') || '') === ` + quote(name) +
		` || b.innerText.trim() === ` + quote(name) + ` || b.tagName === 'LABEL' && b.innerText.trim().split('\n')[0] === ` + quote(name) + `))[0]`
	t.until("a button "+name, `!!(`+find+`)`)
	t.js(`(() => { const b = ` + find + `; b.focus(); b.click(); return true })()`)
}

// fill writes into the field with a label, as a person would, and leaves it.
func (t *tab) fill(label, value string) {
	t.Helper()
	find := `(() => { const shown = [...document.querySelectorAll('label')].filter(l => l.offsetParent !== null); ` +
		`const l = shown.find(l => l.innerText.trim().split('\n')[0].toLowerCase() === ` + quote(strings.ToLower(label)) + `); ` +
		`return l && (l.control || l.querySelector('input, textarea, select')) })()`
	t.until("a field "+label, `!!`+find)
	// What can be switched on has its field while it is on.
	t.js(`(() => { const f = ` + find + `; if (f.closest('.cond') && !f.checked) f.click(); return true })()`)
	t.until("the field of "+label, `(() => { const f = `+find+`; return !!f && !f.closest('.cond') })()`)
	t.js(`(() => { const f = ` + find + `; f.focus(); f.select && f.select(); return true })()`)
	t.do(chromedp.KeyEvent(value))
	t.js(`(() => { document.activeElement.blur(); return true })()`)
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// picture keeps a screenshot in the folder that REFRAIN_SCREENSHOTS names.
func (t *tab) picture(name string) {
	dir := os.Getenv("REFRAIN_SCREENSHOTS")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		t.Log(err)
		return
	}
	_ = os.MkdirAll(dir, 0o755)
	_ = os.WriteFile(filepath.Join(dir, strings.ReplaceAll(t.Name(), "/", "-")+"-"+name+".png"), shot, 0o600)
}

// looks is in what forms each page is checked.
var looks = []struct {
	name          string
	scheme        string
	width, height int64
}{
	{"light", "light", 1440, 1000}, {"dark", "dark", 1440, 1000}, {"phone", "light", 390, 844},
}

// brokenWords are words of letters that stand on two lines. What one could type may be broken.
const brokenWords = `(() => {
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT, n => n.parentElement.closest('script, style, code, pre, .mono, .ttl, .sr, svg, select') ? 2 : 1)
	const broken = []
	for (let n; (n = walk.nextNode()); ) for (const m of n.data.matchAll(/\p{L}{2,20}/gu)) {
		const r = document.createRange()
		r.setStart(n, m.index)
		r.setEnd(n, m.index + m[0].length)
		if (new Set([...r.getClientRects()].map(b => Math.round(b.top))).size > 1) broken.push(m[0])
	}
	return broken
})()`

// accessible runs axe over the page, in light, in dark and on a phone.
func (t *tab) accessible(name string) {
	t.Helper()
	axe, err := os.ReadFile("testdata/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	t.js(string(axe) + `; true`)
	for _, look := range looks {
		t.do(chromedp.EmulateViewport(look.width, look.height))
		call(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: look.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		found, err := eval[[]string](t, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))
			.then(() => axe.run(document, {resultTypes: ['violations']})).then(r => r.violations.map(v => v.id + ': ' + v.help + ': ' +
			v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + ' ' + (n.any[0] ? n.any[0].message : '')).join(' | ')))`)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			t.Errorf("%s, %s: %s", name, look.name, f)
		}
		wide, err := eval[string](t, `document.documentElement.scrollWidth > document.documentElement.clientWidth + 1 ?
			[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1).slice(0, 3).map(e => e.outerHTML.slice(0, 120)).join(' | ') || 'something' : ''`)
		if err != nil {
			t.Fatal(err)
		}
		if wide != "" {
			t.Errorf("%s, %s: the page scrolls sideways: %s", name, look.name, wide)
		}
		if broken, err := eval[[]string](t, brokenWords); err != nil || len(broken) > 0 {
			t.Errorf("%s, %s: words are broken: %q %v", name, look.name, broken, err)
		}
		t.picture(name + "-" + look.name)
	}
	t.do(chromedp.ResetViewport())
	call(t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
}

func exception(d *cdpruntime.ExceptionDetails) string {
	if d.Exception != nil && d.Exception.Description != "" {
		return d.Exception.Description
	}
	return d.Text + " " + d.URL
}
