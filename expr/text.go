// SPDX-License-Identifier: Apache-2.0

package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/refrain-dev/refrain/internal/values/lazyregexp"
)

// ErrNoNumber reports that a text has no number.
var ErrNoNumber = errors.New("no number in the text")

// ErrNoJSON reports that a text has no JSON.
var ErrNoJSON = errors.New("no JSON in the text")

var numberPattern = lazyregexp.New(`[-+−]?(?:[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?`)

// Number returns the first number in a text. A number at the end of a word (the 4 of GPT-4, the 1
// of F1) is skipped, so "F1: 0.83" is 0.83; "1,234.5" is 1234.5, and a comma before one or two
// digits is a decimal comma, so "Nota: 7,5" is 7.5. Without a number it returns [ErrNoNumber].
func Number(text string) (float64, error) {
	for from := 0; from < len(text); {
		digit := strings.IndexAny(text[from:], "0123456789")
		if digit < 0 {
			break
		}
		from = max(from, from+digit-len("−.")) // a number begins with a digit, or with a sign or point before it
		loc := numberPattern().FindStringIndex(text[from:])
		if loc == nil {
			break
		}
		start, end := from+loc[0], from+loc[1]
		token := text[start:end]
		if wordBefore(text, start) {
			bare := strings.TrimLeft(token, "-+−")
			if bare == token || isLetter(lastRune(text[:start])) { // F1, GPT-4
				from = end
				continue
			}
			token = bare // 8-10: the hyphen is no sign
		}
		token = strings.ReplaceAll(strings.ReplaceAll(token, "−", "-"), ",", "")
		token += decimals(token, text[end:])
		f, err := strconv.ParseFloat(token, 64)
		if err == nil {
			return f, nil
		}
		from = end
	}
	return 0, ErrNoNumber
}

// decimals reads a decimal comma and its one or two digits.
func decimals(token, rest string) string {
	if strings.ContainsAny(token, ".eE") || len(rest) < 2 || rest[0] != ',' {
		return ""
	}
	n := 1
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	if n == 1 || n > 3 || n < len(rest) && rest[n] == ',' {
		return ""
	}
	return "." + rest[1:n]
}

func wordBefore(text string, i int) bool {
	r := lastRune(text[:i])
	return isLetter(r) || unicode.IsDigit(r)
}

func isLetter(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func lastRune(s string) rune {
	r, n := utf8.DecodeLastRuneInString(s)
	if n == 0 {
		return ' '
	}
	return r
}

// These bound the work of JSON: how many brackets of a text it tries to read from, and how many bytes it reads again.
const (
	maxCandidates = 64
	maxReread     = 4 << 20
)

// JSON returns the JSON value in a text: the whole text, or else the first ```fence with JSON in
// it, or else the first object or list that can be parsed. Numbers are json.Number. If there is
// none, the error wraps [ErrNoJSON].
func JSON(text string) (any, error) {
	whole := strings.TrimSpace(text)
	if v, _, err := decode(whole, true); err == nil {
		return v, nil
	}
	outside := false
	for block := range strings.SplitSeq(whole, "```") {
		if outside = !outside; outside {
			continue
		}
		if _, body, ok := strings.Cut(block, "\n"); ok { // without the language
			if v, _, err := decode(body, true); err == nil {
				return v, nil
			}
		}
		if v, _, err := decode(strings.TrimPrefix(block, "json"), true); err == nil {
			return v, nil
		}
	}
	rest, left := whole, len(whole)+maxReread
	for range maxCandidates {
		i := strings.IndexAny(rest, "{[")
		if i < 0 || left < 0 {
			break
		}
		v, read, err := decode(rest[i:], false)
		if err == nil {
			return v, nil
		}
		left -= read
		rest = rest[i+1:]
	}
	return nil, fmt.Errorf("read JSON: %w", ErrNoJSON)
}

// decode reads one value; alone means that nothing may follow it. It returns how many bytes it has read.
func decode(s string, alone bool) (v any, read int, err error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, int(e.Offset), err
		}
		return nil, len(s), err
	}
	if alone {
		if _, err := d.Token(); err != io.EOF {
			return nil, len(s), ErrNoJSON
		}
	}
	return v, len(s), nil
}
