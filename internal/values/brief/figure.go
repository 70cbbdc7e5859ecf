// SPDX-License-Identifier: Apache-2.0

package brief

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A figure has one form, wherever people see it: in a terminal, in lines, in sentences and on the page. The page's format.js writes
// the same; testdata/figures.json has cases that both are tested with. The functions write English figures; [Comma] makes Portuguese
// ones of them. They round the digits that people see, half away from zero, as browsers do: 1.005 becomes 1.01.

// Clock writes a duration with its two largest units, and leaves out a second unit that is zero: 850ms, 1.3s, 34s, 9m 12s, 30m,
// 2h 05m. A negative duration is 0ms.
func Clock(d time.Duration) string {
	d = max(0, d)
	second, minute := d.Round(time.Second), d.Round(time.Minute)
	switch ms := d.Round(time.Millisecond); {
	case ms < time.Second:
		return fmt.Sprintf("%dms", ms.Milliseconds())
	case d.Round(100*time.Millisecond) < 10*time.Second:
		return groupedFigure(decimals(d.Seconds(), 1)) + "s"
	case second < time.Minute:
		return fmt.Sprintf("%ds", second/time.Second)
	case second%time.Minute == 0 && second < time.Hour:
		return fmt.Sprintf("%dm", second/time.Minute)
	case second < time.Hour:
		return fmt.Sprintf("%dm %02ds", second/time.Minute, second%time.Minute/time.Second)
	case minute%time.Hour == 0:
		return Whole(int64(minute/time.Hour)) + "h"
	}
	return Whole(int64(minute/time.Hour)) + fmt.Sprintf("h %02dm", minute%time.Hour/time.Minute)
}

// Whole writes a whole number with a comma before each three digits: 1,173.
func Whole[N int | int64 | uint](n N) string { return group(fmt.Sprint(n)) }

// Count writes a number as [Whole] does, with its noun, which gets an s unless the number is 1.
func Count[N int | int64 | uint](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Whole(n) + " " + noun + "s"
}

// Number writes a number of a definition exactly, without groups of digits, and without an exponent unless most of its digits would be
// zeros. bits is the size of its type: 32 or 64.
func Number(f float64, bits int) string {
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		return strconv.FormatFloat(f, 'g', -1, bits)
	}
	return strconv.FormatFloat(f, 'f', -1, bits)
}

// Score writes a score or a metric with four significant digits, one from 1000 on without decimals, and one below never as a whole
// number that it is not: 7.997, 12,346, 7.99996.
func Score(f float64) string {
	if math.Abs(f) >= 1000 {
		return groupedFigure(decimals(f, 0))
	}
	short := Digits(f, 4)
	if short == math.Trunc(short) && short != f {
		short = Digits(f, 6)
	}
	return groupedFigure(short)
}

// Signed writes a change of a score: +1.6, -0.3, +0.
func Signed(f float64) string {
	if f < 0 {
		return Score(f)
	}
	return "+" + Score(f)
}

// OffBy writes by how much a number is off, with two digits, such as " ± 0.31"; "" for 0.
func OffBy(e float64) string {
	switch {
	case e == 0:
		return ""
	case e >= 100:
		return " ± " + groupedFigure(decimals(e, 0))
	}
	return " ± " + groupedFigure(Digits(e, 2))
}

// Odds returns a share of at least a half as people say it: 0.76 is 3 in 4.
func Odds(share float64) (n, of int) {
	for _, o := range [...]int{2, 3, 4, 5, 10, 20, 100} {
		if got := 1 - 1/float64(o); of == 0 || math.Abs(got-share) < math.Abs(float64(n)/float64(of)-share) {
			n, of = o-1, o
		}
	}
	return n, of
}

// Money writes an amount in the currency of the price list, without naming it: with two decimals, and below 1 with three significant
// digits if it has them: 1,234.50, 0.40, 0.0213, 0.
func Money(f float64) string {
	switch {
	case f == 0:
		return "0"
	case math.Abs(f) >= 1:
		f = decimals(f, 2)
	default:
		f = Digits(f, 3)
	}
	text := groupedFigure(f)
	whole, part, _ := strings.Cut(text, ".")
	return whole + "." + part + strings.Repeat("0", max(0, 2-len(part)))
}

// Percent writes a share of 1 in percent, without decimals: 62%.
func Percent(share float64) string { return groupedFigure(decimals(100*share, 0)) + "%" }

// Size writes a number of bytes: 950B, 1.2kB, 3.0MB.
func Size(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%dB", n)
	}
	f, units := float64(n)/1000, []string{"kB", "MB", "GB", "TB"}
	for f >= 999.95 && len(units) > 1 {
		f, units = f/1000, units[1:]
	}
	return group(strconv.FormatFloat(decimals(f, 1), 'f', 1, 64)) + units[0]
}

// Comma returns an English figure as Portuguese writes it: 41.206,5 and not 41,206.5.
func Comma(figure string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '.':
			return ','
		case ',':
			return '.'
		}
		return r
	}, figure)
}

// Digits rounds a number to n significant digits.
func Digits(f float64, n int) float64 { return nearest(f, func(int) int { return n }) }

// decimals rounds a number to n decimals.
func decimals(f float64, n int) float64 {
	return nearest(f, func(exponent int) int { return exponent + 1 + n })
}

// nearest rounds a number to some of its digits, half away from zero. most returns how many, from the exponent of the first digit.
func nearest(f float64, most func(exponent int) int) float64 {
	mantissa, power, ok := strings.Cut(strconv.FormatFloat(math.Abs(f), 'e', -1, 64), "e")
	if !ok { // no number, or infinite
		return f
	}
	digits := strings.Replace(mantissa, ".", "", 1)
	exponent, _ := strconv.Atoi(power) // parses what strconv has written, here and below
	n := most(exponent)
	switch {
	case n >= len(digits):
		return f
	case n < 0:
		return 0
	}
	whole, _ := strconv.ParseUint("0"+digits[:n], 10, 64)
	if digits[n] >= '5' {
		whole++
	}
	short, _ := strconv.ParseFloat(fmt.Sprintf("%de%d", whole, exponent+1-n), 64)
	if f < 0 && short != 0 {
		return -short
	}
	return short
}

// groupedFigure writes a number with all its digits, without an exponent, and with a comma before each three digits of its whole part.
func groupedFigure(f float64) string { return group(strconv.FormatFloat(f+0, 'f', -1, 64)) } // -0+0 is 0

func group(text string) string {
	whole, part, found := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if found {
		whole += "." + part
	}
	return whole
}
