// SPDX-License-Identifier: Apache-2.0

package credential_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/refrain-dev/refrain/internal/process/credential"
)

// kinds has the kinds of keys and tokens as one pattern, which finds them wherever they stand.
var kinds = regexp.MustCompile(`(?i:bearer|basic)\s+[A-Za-z0-9+/=._~-]{16,}|\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{6,}|\bAIza[A-Za-z0-9_-]{20,}|` +
	`\bgh[opsu]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bxox[abps]-[A-Za-z0-9-]{10,}|\bAKIA[A-Z0-9]{12,}|` +
	`\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`)

var tokenTexts = []string{
	"", "b", "sk-", "sk-abcdef", "task-abcdef", "_sk-abcdef", "é sk_abcdef.", "ésk-abcdef", "sk-abcdefsk-abcdef sk-abc rk-123456\n",
	"Bearer abcdefghijklmnop", "xBEARER\n\tabcdefghijklmnop=", "basic bearer basic abcdefghijklmnopqr", "ba\u017fic abcdefghijklmnopqr",
	"AIza" + strings.Repeat("x", 20), "ghp_" + strings.Repeat("x", 20), "github_pat_" + strings.Repeat("_", 20),
	"xoxb-0123456789-", "AKIA0123456789AB", "eyJ0123456789.0123456789", "eyJ0123456789.012345678", "\xffsk-abcdef\xff", "pk_pk_pk_pk_pk",
}

// Tokens are found where one pattern over the whole text would find them.
func TestTokensOfATextAreThoseOfThePattern(t *testing.T) {
	for _, text := range tokenTexts {
		check(t, text)
	}
}

// Addresses are cleaned word by word; texts without blanks show that the words do not change what is found.
func TestAddressesOfATextAreCleanedWordByWord(t *testing.T) {
	const pair = `a://ana:p%s@h/x?q=1&token=%s&api_key="3`
	words := strings.Repeat("see "+pair+"' and\n", 3)
	got, found := credential.Cleaned(words, "[secret]")
	if want := strings.Repeat(`see a://h/x?q=1&token=[secret]&api_key="3' and`+"\n", 3); got != want || !found {
		t.Errorf("got %q (%t), want %q", got, found, want)
	}
	for _, text := range []string{"", "a://", "a://h/?q=1 b@c d=e", "no=address token=5"} {
		if got, found := credential.Cleaned(text, "[secret]"); got != text || found {
			t.Errorf("%q became %q (%t)", text, got, found)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, text := range tokenTexts {
		f.Add(text)
	}
	f.Fuzz(check)
}

func check(t *testing.T, text string) {
	if got, want := credential.WithoutTokens(text, "[secret]"), kinds.ReplaceAllLiteralString(text, "[secret]"); got != want {
		t.Errorf("%q became %q, want %q", text, got, want)
	}
	if got, want := credential.Token(text), kinds.MatchString(text); got != want {
		t.Errorf("%q: got %t, want %t", text, got, want)
	}
}

func BenchmarkWithoutTokens(b *testing.B) {
	text := strings.Repeat(`{"text":"The task-list of the bakery, as basic as it gets, is at https://example.org/?x=1"},`, 10_000)
	for _, one := range []struct {
		name string
		of   func() string
	}{
		{"places", func() string { return credential.WithoutTokens(text, "[secret]") }},
		{"pattern", func() string { return kinds.ReplaceAllLiteralString(text, "[secret]") }},
		{"masked", func() string { return credential.Masked(text) }},
	} {
		b.Run(one.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				one.of()
			}
		})
	}
}
